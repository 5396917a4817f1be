"""The demo from its first process to its audit."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from forebay.cli.demo.crew import Crew, Member
from forebay.cli.demo.ledger import Audit, taken_over_ms
from forebay.core.errors import Unavailable

LOOK_SECONDS = 0.02
READY_SECONDS = 60.0
STALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """`rate` 0 is as fast as it goes."""

    events: int
    rate: float
    producers: int = 4
    consumers: int = 3


class Screen(Protocol):
    def look(self, last_event: str) -> None:
        """Called again and again; draws when it is time to."""
        ...

    def draw(self, last_event: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    audit: Audit
    taken_over_ms: float | None
    seconds: float
    killed_pid: int | None

    def as_object(self) -> dict[str, object]:
        taken = self.taken_over_ms
        return {
            "produced": self.audit.produced,
            "consumed": self.audit.consumed,
            "taken_over_ms": None if taken is None else round(taken, 1),
            "lost": self.audit.lost,
            "repeated": self.audit.repeated,
            "seconds": round(self.seconds, 2),
            "killed": self.killed_pid,
        }


class Story:
    """`check` is called again and again, and may raise to end the story early."""

    def __init__(self, plan: Plan, crew: Crew, screen: Screen, check: Callable[[], None]) -> None:
        self._plan = plan
        self._crew = crew
        self._screen = screen
        self._check = check
        self._has_told_takeover = False
        self.last_event = "starting"

    def play(self) -> Outcome:
        self._crew.start_consumers(self._plan.consumers)
        self._wait_until_ready()
        started = time.monotonic()
        self._crew.start_producers(self._plan.producers, self._plan.events, self._plan.rate)
        self.last_event = f"{self._plan.consumers} consumers share the partitions"
        self._wait_until_all_is_handled()
        return self._outcome(time.monotonic() - started)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not self._crew.is_ready:
            self._step()
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"The consumers of the demo shared no partitions within {READY_SECONDS:g} s. "
                    f"Look at the broker with: forebay doctor"
                )

    def _wait_until_all_is_handled(self) -> None:
        """Gives up on what does not come, so that it is counted as lost."""
        handled = -1
        moved = time.monotonic()
        while not self._is_all_handled():
            self._step()
            self._kill_half_way()
            if self._crew.handled != handled or not self._crew.has_produced_all:
                handled, moved = self._crew.handled, time.monotonic()
            if time.monotonic() - moved > STALL_SECONDS:
                return

    def _is_all_handled(self) -> bool:
        if not self._crew.has_produced_all:
            return False
        self._crew.catch_up()
        return self._crew.handled >= self._crew.produced and self._crew.audit().lost == 0

    def _step(self) -> None:
        self._check()
        self._crew.catch_up()
        self._crew.check()
        self._tell_takeover()
        self._screen.look(self.last_event)
        time.sleep(LOOK_SECONDS)

    def _kill_half_way(self) -> None:
        if self._crew.killed is None and self._crew.handled >= self._plan.events / 2:
            victim = self._crew.kill_the_busiest()
            self.last_event = f"worker {victim.pid} was killed"

    def _tell_takeover(self) -> None:
        killed = self._crew.killed
        if killed is None or self._has_told_takeover:
            return
        if first := self._first_takeover(killed):
            member, after_ms = first
            partitions = len(killed.ledger.owned & member.ledger.owned)
            self._has_told_takeover = True
            self.last_event = (
                f"worker {killed.pid} was killed; worker {member.pid} took over "
                f"{partitions} partitions after {after_ms / 1_000:.2f} s"
            )

    def _first_takeover(self, killed: Member) -> tuple[Member, float] | None:
        times = [
            (member, taken_over_ms(killed.ledger.owned, self._crew.killed_at_ns, member.ledger))
            for member in self._crew.working_consumers
        ]
        known = [(member, after_ms) for member, after_ms in times if after_ms is not None]
        return min(known, key=lambda pair: pair[1], default=None)

    def _outcome(self, seconds: float) -> Outcome:
        self._tell_takeover()
        self._screen.draw(self.last_event)
        killed = self._crew.killed
        first = self._first_takeover(killed) if killed else None
        return Outcome(
            audit=self._crew.audit(),
            taken_over_ms=first[1] if first else None,
            seconds=seconds,
            killed_pid=killed.pid if killed else None,
        )
