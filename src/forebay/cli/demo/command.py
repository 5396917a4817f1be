"""forebay demo: its options."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option, Typer

from forebay.cli.command import Command
from forebay.cli.demo.wish import Wish
from forebay.simulator.scenarios import SCENARIOS


@dataclass(frozen=True)
class Demo(Command):
    scenario: Annotated[
        str, Option("--scenario", metavar="NAME", help=f"One of {', '.join(SCENARIOS)}.")
    ] = "storm"
    events: Annotated[
        int, Option("--events", metavar="N", min=1, help="How many events are sent.")
    ] = 2_000
    rate: Annotated[
        float | None,
        Option(
            "--rate",
            metavar="N",
            min=0,
            help="Events a second, 0 as fast as it goes. Without it the scenario's own, bursts "
            "included.",
        ),
    ] = None
    domains: Annotated[str, Option("--domains", metavar="NAMES", help="xact, for now.")] = "xact"
    seed: Annotated[int, Option("--seed", metavar="N", help="Another one, another story.")] = 1
    exit_when_done: Annotated[
        bool, Option("--exit-when-done", help="Leave after the audit; else q does, on a terminal.")
    ] = False

    def run(self) -> int:
        from forebay.cli.demo.performance import Performance  # noqa: PLC0415  a domain is heavy

        wish = Wish(
            scenario=self.scenario,
            events=self.events,
            rate=self.rate,
            domains=self.domains,
            seed=self.seed,
            exit_when_done=self.exit_when_done,
            broker=self.broker,
            folder=self.folder,
            config=self.config,
            log_level=self.log_level,
            as_json=self.as_json,
        )
        return Performance(wish).run()


def add_demo_command(app: Typer) -> None:
    app.command(
        "demo",
        help="The xact pipeline on this machine, the world around it simulated, and an audit.\n\n"
        "forebay demo --scenario storm --events 2000 --exit-when-done --json",
    )(Demo)
