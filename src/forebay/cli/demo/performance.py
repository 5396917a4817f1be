"""One demo, from what was asked for to what came of it."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size

from forebay.cli.command import DONE, FOUND_A_PROBLEM
from forebay.cli.demo.interruption import noted_interruption
from forebay.cli.demo.latest import Latest
from forebay.cli.demo.opening import LOG_NAME, Opened, check_broker, opened
from forebay.cli.demo.outcome import Asked, Measured, Outcome, audit_lines, figures_line
from forebay.cli.demo.picture import folded
from forebay.cli.demo.place import (
    BATCH_SECONDS,
    CIRCUIT_SECONDS,
    DATA_FOLDER,
    FILE_NAME,
    RETRY_SECONDS,
    claim,
)
from forebay.cli.demo.proof import prove
from forebay.cli.demo.screen import Lines, Screen, can_be_live
from forebay.cli.demo.story import Quit, Story
from forebay.cli.demo.wish import Wish
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_object, remark, say
from forebay.domains.xact.settings import DOMAIN
from forebay.simulator.scenarios import UnknownScenario, scenario_named

KEYS = "keys: k kill a worker, b bounce the broker, f make the file host fail, q quit"


class Performance:
    def __init__(self, wish: Wish) -> None:
        self._wish = wish

    def run(self) -> int:
        self._check()
        folder = claim(self._wish.folder or DATA_FOLDER)
        with noted_interruption() as interruption:
            if self._wish.broker == "kafka":
                self._tell(" starting Apache Kafka (its first start fetches jars, about 1 min)")
            with opened(self._wish, folder, Latest()) as things:
                interruption.check()
                self._tell_head(folder, things)
                with self._screen() as screen:
                    story = Story(things.cast, screen, self._wish.events, interruption.check)
                    return self._play(story, things, folder)

    def _play(self, story: Story, things: Opened, folder: Path) -> int:
        try:
            story.play()
        except Quit:
            story.conclude([_stopped(things, folder)], goes_on=False)
            return DONE
        outcome = self._outcome(story, things)
        told = [*audit_lines(outcome), figures_line(outcome), self._next(folder)]
        story.conclude(told, goes_on=not self._wish.exit_when_done)
        if self._wish.as_json:
            print_object(outcome.as_object())
        return DONE if outcome.is_good else FOUND_A_PROBLEM

    def _outcome(self, story: Story, things: Opened) -> Outcome:
        report = prove(things, story.tell)
        cast = things.cast
        measured = Measured(
            events=cast.feeder.acknowledged,
            sent_again=cast.feeder.sent_again,
            seconds=story.last_moved_at - (cast.feeder.started_at or 0.0),
            tally=cast.observer.tally,
            faults={
                **cast.world.faults(),
                "worker_killed": cast.crew.killed + cast.crew.deaths_unasked,
            },
            peak_rss_mb=story.peaks.as_object(),
        )
        kind = things.broker.describe().kind
        asked = Asked(self._wish.scenario, kind, self._wish.seed, is_shifted=story.has_failed_host)
        return Outcome(asked, report, cast.feeder.expected, measured)

    def _check(self) -> None:
        if self._wish.domains != DOMAIN:
            raise WrongUse(
                f"The demo has no domain {self._wish.domains!r} yet; write --domains xact."
            )
        if self._wish.config is not None:
            raise WrongUse(
                "The demo writes settings of its own into its folder; leave --config out. How to "
                "get into a Kafka it takes from the environment (KAFKA_…)."
            )
        try:
            scenario_named(self._wish.scenario)
        except UnknownScenario as problem:
            raise WrongUse(str(problem)) from problem
        check_broker(self._wish.broker, self._wish.folder or DATA_FOLDER)

    def _tell_head(self, folder: Path, things: Opened) -> None:
        """The place of an embedded broker is the folder, which the line names anyway."""
        broker = things.broker.describe().sentence.partition(" · ")[0]
        delays = "/".join(str(seconds) for seconds in RETRY_SECONDS)
        compressed = (
            f" retry delays {delays} s instead of 5/10/20/40 min · a host that fails rests "
            f"{CIRCUIT_SECONDS} s instead of 30 · rows are stored every {BATCH_SECONDS} s, not 5"
        )
        named = f"scenario {self._wish.scenario} · broker {broker} · data {_shown(folder)}"
        lines = [f" forebay demo · {named}", compressed]
        if self._is_live:
            width = get_terminal_size().columns
            lines = folded([*lines, f" {KEYS} · bars: the last seven seconds"], width)
        for line in (*lines, ""):
            self._tell(line)

    def _next(self, folder: Path) -> str:
        """What works with the folder alone, and with a broker that is still there."""
        commands = [f"forebay dlq stats --dir {_quoted(folder)}"]
        if self._wish.broker in {None, "embedded"}:
            commands.append(f"forebay audit xact --config {_quoted(folder / FILE_NAME)}")
        return f" next     {' · '.join([*commands, 'README: run your own function'])}"

    @contextmanager
    def _screen(self) -> Iterator[Screen]:
        if not self._is_live:
            yield Lines(self._tell)
            return
        from forebay.cli.demo.live import live_screen  # noqa: PLC0415  a pipe needs no rich

        with live_screen() as screen:
            yield screen

    @property
    def _is_live(self) -> bool:
        return not self._wish.as_json and can_be_live()

    def _tell(self, line: str) -> None:
        (remark if self._wish.as_json else say)(line)


def _stopped(things: Opened, folder: Path) -> str:
    feeder = things.cast.feeder
    return (
        f" stopped  after {feeder.acknowledged:,} events, at your wish; nothing was audited. "
        f"What the workers said is in {_shown(folder / LOG_NAME)}."
    )


def _quoted(path: Path) -> str:
    return shlex.quote(_shown(path))


def _shown(path: Path) -> str:
    return str(path) if path.is_absolute() else f"./{path}"
