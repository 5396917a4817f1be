"""What a stage counts. Written by its engine thread alone, read by anybody."""

from bisect import bisect_left
from dataclasses import dataclass, field

# Seconds a handler took; the last bucket holds all that took longer.
BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(slots=True)
class Counters:
    """`handled` counts final outcomes; records on their way to a tier are `retried`."""

    delivered: int = 0
    handled: int = 0
    retried: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    emitted: int = 0
    replays_ended: int = 0
    expired: int = 0
    late: int = 0
    timed_out: int = 0
    hooks_failed: int = 0
    write_failures: int = 0
    commits: int = 0
    commit_failures: int = 0
    busy_seconds: float = 0.0
    seconds_buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))

    def took(self, seconds: float) -> None:
        self.busy_seconds += seconds
        self.seconds_buckets[bisect_left(BUCKETS, seconds)] += 1

    def as_object(self) -> dict[str, object]:
        told: dict[str, object] = {name: getattr(self, name) for name in self.__slots__}
        return told | {"seconds_buckets": list(self.seconds_buckets)}
