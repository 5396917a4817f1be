"""What a loop says of itself, as plain values that anybody may keep and send."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from forebay.core.records import Offset
from forebay.engine.held import HeldPartitions
from forebay.engine.work import HeldPartition


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """`watermark` is what the partition waits for; `span` what a crash would repeat at most."""

    topic: str
    partition: int
    watermark: Offset
    unresolved: int
    span: int
    is_paused: bool


@dataclass(frozen=True, slots=True)
class StageHealth:
    """`kind` is record, sink or scheduler. `reasons` are sentences; empty means well."""

    stage: str
    group: str
    kind: str
    unresolved: int
    bytes_held: int
    running: int
    stuck: int
    oldest_seconds: float
    next_due_ms: int | None
    is_idle: bool
    is_stopping: bool
    reasons: tuple[str, ...]
    partitions: tuple[PartitionHealth, ...]
    counters: dict[str, object] = field(default_factory=dict)

    @property
    def is_well(self) -> bool:
        return not self.reasons

    @property
    def blocking(self) -> PartitionHealth | None:
        """The partition with the longest way between what is done and what may be committed."""
        open_ones = [partition for partition in self.partitions if partition.unresolved]
        return max(open_ones, key=lambda partition: partition.span, default=None)

    def as_object(self) -> dict[str, object]:
        return asdict(self)


def partitions_of(held: HeldPartitions) -> tuple[PartitionHealth, ...]:
    return tuple(_partition(partition) for partition in held)


def _partition(held: HeldPartition) -> PartitionHealth:
    progress = held.progress
    return PartitionHealth(
        *held.at, progress.watermark, progress.unresolved, progress.span, held.is_paused
    )


def health_from(told: Mapping[str, Any]) -> StageHealth:
    """What `as_object` gave, after a way through JSON."""
    partitions = tuple(PartitionHealth(**partition) for partition in told["partitions"])
    reasons = tuple(told["reasons"])
    return StageHealth(**{**told, "partitions": partitions, "reasons": reasons})
