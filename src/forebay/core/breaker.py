"""Stops asking what has just failed again and again, and finds out when it answers again."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from forebay.core.errors import InvalidRequest

State: TypeAlias = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Opens after `failures` in a row; after `open_seconds` up to `probes` attempts go out at once.

    It closes when `successes` of them have answered.
    """

    failures: int = 5
    open_seconds: float = 30.0
    successes: int = 1
    probes: int = 1

    def __post_init__(self) -> None:
        if min(self.failures, self.successes, self.probes) < 1 or self.open_seconds <= 0:
            raise InvalidRequest(
                "A circuit breaker opens after 1 failure or more, stays open for longer than no "
                "time, and closes after 1 success or more of 1 probe or more."
            )


class CircuitBreaker:
    """`now` is handed in. A probe that is never heard of again gives way to another in time."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failures_in_a_row = 0
        self._successes = 0
        self._opened_at: float | None = None
        self._probes: list[float] = []

    def state(self, now: float) -> State:
        if self._opened_at is None:
            return "closed"
        return "open" if now < self.probe_at else "half_open"

    @property
    def probe_at(self) -> float:
        """When the next attempt may go out; in the past while the circuit is closed."""
        if self._opened_at is None:
            return 0.0
        if len(self._probes) < self._policy.probes:
            return self._opened_at + self._policy.open_seconds
        return self._probes[0] + self._policy.open_seconds

    def allows(self, now: float) -> bool:
        """True for every attempt while closed, and for so many probes at a time afterwards."""
        match self.state(now):
            case "closed":
                return True
            case "open":
                return False
            case _:
                kept = [since for since in self._probes if now < since + self._policy.open_seconds]
                self._probes = [*kept, now]
                return True

    def succeeded(self) -> None:
        self._failures_in_a_row = 0
        if self._opened_at is None:
            return
        self._successes += 1
        del self._probes[:1]
        if self._successes >= self._policy.successes:
            self._close()

    def failed(self, now: float) -> None:
        """What was sent before the circuit opened may fail after it did: that changes nothing."""
        if self._opened_at is not None:
            if self._probes:
                self._open(now)
            return
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._policy.failures:
            self._open(now)

    def _open(self, now: float) -> None:
        self._opened_at, self._successes = now, 0
        self._probes.clear()

    def _close(self) -> None:
        self._opened_at, self._successes = None, 0
        self._probes.clear()
