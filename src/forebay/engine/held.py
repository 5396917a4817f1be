"""The partitions of one stage, and how much of them is held unresolved."""

from collections.abc import Iterator

from forebay.core.records import Offset, TopicPartition
from forebay.engine.work import HeldPartition, Work


class HeldPartitions:
    """`by_place` is keyed by (topic, partition); `records` and `bytes` are sums over all."""

    def __init__(self) -> None:
        self.by_place: dict[tuple[str, int], HeldPartition] = {}
        self.records = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[HeldPartition]:
        return iter(self.by_place.values())

    def __len__(self) -> int:
        return len(self.by_place)

    def __contains__(self, at: TopicPartition) -> bool:
        return at in self.by_place

    def __getitem__(self, at: TopicPartition) -> HeldPartition:
        return self.by_place[at]

    def add(self, at: TopicPartition, start: Offset, now: float) -> HeldPartition:
        """A new assignment inherits nothing."""
        self.fence(at)
        held = self.by_place[at] = HeldPartition(at, start, now)
        return held

    def fence(self, at: TopicPartition) -> None:
        held = self.by_place.pop(at, None)
        if held is not None:
            held.is_fenced = True
            self.records -= held.progress.unresolved
            self.bytes -= held.bytes_held

    def resolve(self, work: Work, now: float) -> None:
        """What belongs to an older assignment changes nothing."""
        held = work.held
        if held.is_fenced or not held.progress.resolve(work.record.offset):
            return
        self.records -= 1
        self.bytes -= work.size
        held.bytes_held -= work.size
        held.moved_at = now
