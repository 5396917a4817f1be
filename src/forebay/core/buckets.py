"""A token bucket: so many at once, so many a second."""

from forebay.core.errors import InvalidRequest


class TokenBucket:
    """Waiting costs nothing and nothing is discarded: `take` says how long until it may be."""

    def __init__(self, per_second: float, burst: float | None = None) -> None:
        if per_second <= 0:
            raise InvalidRequest("A rate is more than 0 a second.")
        self._per_second = per_second
        self._burst = max(1.0, per_second if burst is None else burst)
        self._tokens = self._burst
        self._filled_at: float | None = None

    def take(self, now: float, tokens: float = 1.0) -> float:
        """0 and taken, or the seconds to wait and nothing taken."""
        self._fill(now)
        if self._tokens >= min(tokens, self._burst):
            self._tokens -= tokens
            return 0.0
        return (min(tokens, self._burst) - self._tokens) / self._per_second

    def available(self, now: float) -> int:
        self._fill(now)
        return max(0, int(self._tokens))

    def _fill(self, now: float) -> None:
        """A clock that went backwards fills nothing."""
        if self._filled_at is None:
            self._filled_at = now
        elapsed = max(0.0, now - self._filled_at)
        self._filled_at = max(now, self._filled_at)
        self._tokens = min(self._burst, self._tokens + elapsed * self._per_second)
