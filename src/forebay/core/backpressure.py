"""How much a stage may hold, and which partitions wait because of it."""

from dataclasses import dataclass

from forebay.core.errors import InvalidRequest

STALLED_SECONDS = 1.0  # pausing throws away what the client has fetched, so not sooner


@dataclass(frozen=True, slots=True)
class Bounds:
    """Records and bytes a stage holds unresolved, and how far one partition may run ahead.

    `span` limits what a crash repeats: everything delivered above the watermark, done or not.
    """

    records: int = 1_000
    bytes: int = 64 * 2**20
    span: int = 10_000

    def __post_init__(self) -> None:
        if min(self.records, self.bytes, self.span) < 1:
            raise InvalidRequest("Every bound of a stage is at least 1.")

    def room(self, records_held: int, bytes_held: int) -> int:
        """How many more records may be taken in; one may overshoot the bytes, so none starves."""
        if bytes_held >= self.bytes:
            return 0
        return max(0, self.records - records_held)

    def share(self, partitions: int) -> int:
        """What one partition may hold that makes no progress, so that the others go on."""
        return max(1, self.records // (partitions + 1))

    def must_pause(self, *, span: int, unresolved: int, share: int, still_seconds: float) -> bool:
        is_stalled = unresolved >= share and still_seconds >= STALLED_SECONDS
        return span >= self.span or is_stalled

    def may_resume(self, *, span: int, unresolved: int, share: int) -> bool:
        """Half of it, so that pausing and resuming do not alternate."""
        return span <= self.span // 2 and unresolved <= share // 2
