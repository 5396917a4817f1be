"""forebay demo."""

import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from forebay.bootstrap import connect, trial_kafka
from forebay.broker.port import Broker
from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command
from forebay.cli.demo.crew import Crew
from forebay.cli.demo.interruption import noted_interruption
from forebay.cli.demo.progress import Lines, Progress
from forebay.cli.demo.story import Outcome, Plan, Screen, Story
from forebay.cli.demo.worker import Orders
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_object, remark, say
from forebay.cli.session import Session
from forebay.core.errors import Unavailable, UnknownGroup
from forebay.core.topics import TopicSpec
from forebay.settings import Flags, TrialKafka

DATA_FOLDER = Path("demo-data")
PARTITIONS = 12


@dataclass(frozen=True)
class Demo(Command):
    events: Annotated[
        int, Option("--events", metavar="N", min=1, help="How many records in all.")
    ] = 20_000
    rate: Annotated[
        float, Option("--rate", metavar="N", min=0, help="Records a second; 0 as fast as it goes.")
    ] = 2_000.0
    exit_when_done: Annotated[
        bool, Option("--exit-when-done", help="Leave after the audit (it always does for now).")
    ] = False

    def run(self) -> int:
        folder = self.folder or DATA_FOLDER
        session = Session(Flags(self.broker or "embedded", folder, self.log_level, self.log_format))
        with _reachable(session) as url, closing(connect(url, emit=session.emit)) as broker:
            self._tell(f"forebay demo · broker {_kind(broker)} · data {_shown(folder)}")
            outcome = self._play(broker, url, folder)
        self._tell_outcome(outcome)
        return FOUND_A_PROBLEM if outcome.audit.lost else DONE

    def _play(self, broker: Broker, url: str, folder: Path) -> Outcome:
        name = f"demo-{uuid.uuid4().hex[:8]}"
        broker.admin().create_topic(TopicSpec(name, PARTITIONS))
        try:
            with (
                noted_interruption() as interruption,
                _ledgers(folder / f"{name}-ledgers") as place,
            ):
                template = Orders(name, url, name, name, "", os.getpid())
                with Crew(template, place) as crew, self._screen(broker, crew, name) as screen:
                    story = Story(Plan(self.events, self.rate), crew, screen, interruption.check)
                    outcome = story.play()
                if not outcome.audit.lost:
                    shutil.rmtree(place)
                return outcome
        finally:
            broker.admin().delete_topic(name)

    @contextmanager
    def _screen(self, broker: Broker, crew: Crew, group: str) -> Iterator[Screen]:
        def lag() -> int | None:
            return _lag(broker, group)

        if self.as_json or not sys.stdout.isatty():
            yield Lines(Progress(crew, lag, every_seconds=1.0), self._tell)
            return
        from rich.live import Live  # noqa: PLC0415  a pipe needs no rich

        from forebay.cli.demo.live import LiveTable  # noqa: PLC0415  the same

        with Live(auto_refresh=False) as live:
            yield LiveTable(Progress(crew, lag, every_seconds=0.25), live)

    def _tell(self, line: str) -> None:
        (remark if self.as_json else say)(line)

    def _tell_outcome(self, outcome: Outcome) -> None:
        if self.as_json:
            print_object(outcome.as_object())
        else:
            say(sentence(outcome))


def sentence(outcome: Outcome) -> str:
    audit = outcome.audit
    taken = outcome.taken_over_ms
    takeover = "nothing was taken over" if taken is None else f"taken over in {taken:.0f} ms"
    return (
        f" audit    produced {audit.produced:,} · consumed {audit.consumed:,} · {takeover} · "
        f"lost {audit.lost:,} · repeated {audit.repeated:,} · {outcome.seconds:.1f} s"
    )


@contextmanager
def _reachable(session: Session) -> Iterator[str]:
    """The broker as a URL that other processes can use."""
    match session.settings.broker:
        case EmbeddedSettings(folder):
            yield f"embedded:{folder.resolve()}"
        case KafkaSettings(bootstrap_servers):
            yield f"kafka://{bootstrap_servers}"
        case TrialKafka():
            with trial_kafka() as servers:
                yield f"kafka://{servers}"
        case _:
            raise WrongUse("The demo makes a topic; Event Hubs takes none. Write another --broker.")


@contextmanager
def _ledgers(folder: Path) -> Iterator[Path]:
    """Kept where something went wrong: they say what each process did."""
    folder.mkdir(parents=True)
    try:
        yield folder
    except KeyboardInterrupt:
        shutil.rmtree(folder)
        raise


def _lag(broker: Broker, group: str) -> int | None:
    try:
        return broker.admin().describe_group(group).lag
    except (UnknownGroup, Unavailable):
        return None


def _kind(broker: Broker) -> str:
    """The place of an embedded broker is the data folder, which the line names anyway."""
    return broker.describe().sentence.partition(" · ")[0]


def _shown(folder: Path) -> str:
    return str(folder) if folder.is_absolute() else f"./{folder}"


def add_demo_command(app: Typer) -> None:
    app.command(
        "demo",
        help="Four producing and three consuming processes; one is killed, nothing is lost.\n\n"
        "forebay demo --events 5000 --exit-when-done --json",
    )(Demo)
