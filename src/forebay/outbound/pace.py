"""Whether a stream keeps its least pace. A byte now and then would pass any timeout of a read."""


class Pace:
    __slots__ = ("_bytes", "_bytes_min", "_since", "_window_seconds")

    def __init__(self, window_seconds: float, bytes_per_second_min: int, now: float) -> None:
        self._window_seconds = window_seconds
        self._bytes_min = window_seconds * bytes_per_second_min
        self._since = now
        self._bytes = 0

    def is_too_slow(self, count: int, now: float) -> bool:
        """After `count` bytes more; judged once a window."""
        self._bytes += count
        if now - self._since < self._window_seconds:
            return False
        fell_behind = self._bytes < self._bytes_min
        self._since, self._bytes = now, 0
        return fell_behind
