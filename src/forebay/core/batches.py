"""When a batch is cut: full or old enough, and never before the last one is stored."""

from dataclasses import dataclass

from forebay.core.errors import InvalidRequest

RECORDS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class BatchRule:
    records: int = 100
    seconds: float = 5.0
    records_max: int = RECORDS_MAX
    bytes_max: int = 64 * 2**20

    def __post_init__(self) -> None:
        if not 1 <= self.records <= self.records_max:
            raise InvalidRequest(
                f"A batch has 1 to {self.records_max} records, not {self.records}."
            )
        if self.seconds < 0:
            raise InvalidRequest("A batch cannot be cut before it began; use seconds of 0 or more.")

    def is_due(self, records: int, bytes_held: int, age_seconds: float) -> bool:
        if not records:
            return False
        is_full = records >= self.records or bytes_held >= self.bytes_max
        return is_full or age_seconds >= self.seconds

    def has_room(self, records: int, bytes_held: int) -> bool:
        return records < self.records_max and bytes_held < self.bytes_max
