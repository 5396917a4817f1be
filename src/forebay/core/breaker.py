"""Stops asking what has just failed again and again, and finds out when it answers again."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from forebay.core.errors import InvalidRequest

State: TypeAlias = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Opens after `failures` in a row; after `open_seconds` one attempt may probe."""

    failures: int = 5
    open_seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.failures < 1 or self.open_seconds <= 0:
            raise InvalidRequest(
                "A circuit breaker opens after 1 failure or more and stays open for longer than "
                "no time."
            )


class CircuitBreaker:
    """`now` is handed in. A probe that is never heard of again gives way to another in time."""

    def __init__(self, policy: BreakerPolicy) -> None:
        self._policy = policy
        self._failures_in_a_row = 0
        self._opened_at: float | None = None
        self._probing_since: float | None = None

    def state(self, now: float) -> State:
        if self._opened_at is None:
            return "closed"
        return "open" if now < self.probe_at else "half_open"

    @property
    def probe_at(self) -> float:
        """When the next attempt may go out; in the past while the circuit is closed."""
        since = self._opened_at if self._probing_since is None else self._probing_since
        return 0.0 if since is None else since + self._policy.open_seconds

    def allows(self, now: float) -> bool:
        """True for every attempt while closed, and for one probe at a time afterwards."""
        match self.state(now):
            case "closed":
                return True
            case "open":
                return False
            case _:
                self._probing_since = now
                return True

    def succeeded(self) -> None:
        self._failures_in_a_row = 0
        self._opened_at = self._probing_since = None

    def failed(self, now: float) -> None:
        """What was sent before the circuit opened may fail after it did: that changes nothing."""
        if self._opened_at is not None:
            if self._probing_since is not None:
                self._opened_at, self._probing_since = now, None
            return
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._policy.failures:
            self._opened_at = now
