"""How often and when a record is tried again: decided here, carried out by the engine."""

from collections.abc import Sequence
from dataclasses import dataclass

from forebay.core.durations import seconds, written
from forebay.core.errors import InvalidRequest

DEFAULT_DELAYS_SECONDS = (300.0, 600.0, 1200.0, 2400.0)
UNCOUNTED_SECONDS_MAX = 86_400.0
IN_PLACE_SECONDS = (0.1, 0.4)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """One attempt, then one more after each delay, then the dead letters.

    `in_place` tries that often again at once, within a second, before an attempt counts as failed.
    """

    delays_seconds: tuple[float, ...] = DEFAULT_DELAYS_SECONDS
    in_place: int = 0

    def __post_init__(self) -> None:
        if list(self.delays_seconds) != sorted(set(self.delays_seconds)):
            told = ", ".join(written(delay) for delay in self.delays_seconds)
            raise InvalidRequest(f"Retry delays must grow, each longer than the last; not {told}.")
        if any(delay <= 0 for delay in self.delays_seconds):
            raise InvalidRequest("A retry delay of nothing is no delay; use in-place tries for it.")
        if not 0 <= self.in_place <= len(IN_PLACE_SECONDS):
            raise InvalidRequest(
                f"A stage can try again in place up to {len(IN_PLACE_SECONDS)} times, "
                f"not {self.in_place}; longer waits belong in a tier."
            )

    @property
    def attempts_max(self) -> int:
        return 1 + len(self.delays_seconds)

    @property
    def tiers(self) -> tuple[str, ...]:
        return tuple(written(delay) for delay in self.delays_seconds)

    def tier_after(
        self, attempt: int, after_seconds: float | None = None, *, counts: bool = True
    ) -> int | None:
        """The tier a record goes to when this attempt failed, None when attempts are used up."""
        if not self.delays_seconds:
            return None
        if counts and attempt >= self.attempts_max:
            return None
        if after_seconds is not None:
            return self._first_at_least(after_seconds)
        return 0 if not counts else attempt - 1

    def _first_at_least(self, after_seconds: float) -> int:
        for tier, delay in enumerate(self.delays_seconds):
            if delay >= after_seconds:
                return tier
        return len(self.delays_seconds) - 1


def retry_policy(delays: Sequence[float | str] | None, in_place: int = 0) -> RetryPolicy:
    if delays is None:
        return RetryPolicy(in_place=in_place)
    return RetryPolicy(tuple(seconds(delay) for delay in delays), in_place)
