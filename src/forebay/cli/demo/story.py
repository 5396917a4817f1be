"""The demo from the first event to the audit, and everything a key may do to it meanwhile."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from forebay.cli.demo.crew import Crew
from forebay.cli.demo.feeder import Feeder
from forebay.cli.demo.figures import Peaks
from forebay.cli.demo.latest import Latest
from forebay.cli.demo.observer import Observer
from forebay.cli.demo.pace import Pace
from forebay.cli.demo.picture import Moment
from forebay.cli.demo.screen import Screen
from forebay.cli.demo.world import World
from forebay.core.errors import Unavailable

LOOK_SECONDS = 0.05
PACE_SECONDS = 1.0
START_SECONDS = 60.0
STALL_SECONDS = 180.0
OUTAGE_SECONDS = 10.0


class Quit(Exception):
    """Whoever watches has seen enough."""


@dataclass(frozen=True, slots=True)
class Cast:
    crew: Crew
    feeder: Feeder
    observer: Observer
    world: World
    latest: Latest


class Story:
    """`check` raises KeyboardInterrupt once Ctrl-C was pressed."""

    def __init__(self, cast: Cast, screen: Screen, events: int, check: Callable[[], None]) -> None:
        self._cast = cast
        self._screen = screen
        self._events = events
        self._check = check
        self._pace = Pace()
        self._paced_at = time.monotonic()
        self._shown_at = 0.0
        self._moved_at = time.monotonic()
        self._closing: Sequence[str] = ()
        self.peaks = Peaks()
        self.has_failed_host = False

    def play(self) -> None:
        """Until everything that was sent has come to an end. Raises Quit."""
        cast = self._cast
        self._closing = [" starting the workers"]
        cast.crew.start()
        self._go_on_until(lambda: cast.crew.is_whole, START_SECONDS, "the workers did not start")
        self._closing = ()
        cast.observer.start()
        cast.feeder.start()
        self._go_on_until(
            lambda: cast.observer.is_drained and cast.crew.is_whole and cast.crew.is_taken_over,
            STALL_SECONDS,
            "nothing moved any more",
        )

    def tell(self, closing: Sequence[str]) -> None:
        """How far something is that the demo waits for."""
        self._check()
        self._closing = closing
        self._show_if_due(time.monotonic())

    def conclude(self, closing: Sequence[str], *, goes_on: bool) -> None:
        """The last picture; it stays alive until q where somebody watches."""
        self._closing = closing
        self._screen.conclude(self._moment())
        with suppress(Quit):
            while goes_on and self._screen.is_watched:
                self._step()

    @property
    def last_moved_at(self) -> float:
        return self._moved_at

    def _go_on_until(self, is_over: Callable[[], bool], seconds: float, trouble: str) -> None:
        self._moved_at = time.monotonic()
        while not is_over():
            self._step()
            if time.monotonic() - self._moved_at > seconds:
                raise Unavailable(
                    f"For {seconds:.0f} s {trouble}, so the demo was stopped. The workers' log "
                    f"says why."
                )

    def _step(self) -> None:
        self._check()
        now = time.monotonic()
        cast = self._cast
        for thread in (cast.feeder, cast.observer):
            if thread.failure is not None:
                raise thread.failure
        cast.crew.step(now)
        cast.world.step(now, cast.observer.answered_at)
        self._obey(self._screen.keys.pressed(), now)
        self._look_at_pace(now)
        self._show_if_due(now)
        time.sleep(LOOK_SECONDS)

    def _obey(self, keys: str, now: float) -> None:
        cast = self._cast
        for key in keys:
            match key:
                case "k":
                    cast.crew.kill_one(now)
                case "b":
                    self._bounce(now)
                case "f":
                    self.has_failed_host = True
                    cast.world.fail_host(OUTAGE_SECONDS)
                case "q":
                    raise Quit

    def _bounce(self, now: float) -> None:
        if self._cast.world.kafka is None:
            self._cast.crew.kill_all(now)  # on embedded every process is the broker
        self._cast.world.bounce(now)

    def _look_at_pace(self, now: float) -> None:
        passed = now - self._paced_at
        if passed < PACE_SECONDS:
            return
        self._paced_at = now
        self._pace.look(self._cast.crew.healths_by_process, passed)
        if self._pace.moved:
            self._moved_at = now
        self.peaks.look({**self._cast.crew.process_ids, **self._cast.world.process_ids})

    def _show_if_due(self, now: float) -> None:
        self._screen.say(self._cast.latest.take_untold())
        if now - self._shown_at < self._screen.every_seconds:
            return
        self._shown_at = now
        self._screen.show(self._moment())

    def _moment(self) -> Moment:
        cast = self._cast
        return Moment(
            pace=self._pace,
            tally=cast.observer.tally,
            sent=cast.feeder.acknowledged,
            events=self._events,
            healths=cast.crew.healths,
            now_ms=int(time.time() * 1000),
            latest=cast.latest.sentences(),
            closing=self._closing,
        )
