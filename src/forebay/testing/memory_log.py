"""What a `MemoryBroker` holds: topics, their partitions, groups; all behind one lock."""

import threading
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field

from forebay.broker.port import Watermarks
from forebay.core.clock import Clock
from forebay.core.errors import UnknownPartition, UnknownTopic
from forebay.core.records import Offset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.memory_groups import MemoryGroup


class MemoryLog:
    """One partition: records in order, the offset of the first is `low`."""

    def __init__(self) -> None:
        self.low: Offset = 0
        self._records: list[Record] = []

    @property
    def end(self) -> Offset:
        return self.low + len(self._records)

    @property
    def watermarks(self) -> Watermarks:
        return Watermarks(self.low, self.end)

    def append(self, record: Record) -> Record:
        stored = record._replace(offset=self.end)
        self._records.append(stored)
        return stored

    def read(self, offset: Offset, max_records: int) -> list[Record]:
        start = offset - self.low
        return self._records[start : start + max_records]

    def trim(self, before: Offset) -> None:
        del self._records[: max(0, before - self.low)]
        self.low = max(self.low, before)

    def offset_for_time(self, timestamp_ms: int) -> Offset:
        later = (r.offset for r in self._records if r.timestamp_ms >= timestamp_ms)
        return next(later, self.end)


@dataclass(slots=True)
class MemoryTopic:
    spec: TopicSpec
    logs: list[MemoryLog]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


class MemoryStore:
    """`changed` guards everything here and is notified of every change."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.changed = threading.Condition()
        self.topics: dict[str, MemoryTopic] = {}
        self.groups: dict[str, MemoryGroup] = {}
        self.refused: set[str] = set()

    def topic(self, name: str) -> MemoryTopic:
        if name not in self.topics:
            raise UnknownTopic(f"There is no topic {name}. Create it first.")
        return self.topics[name]

    def log(self, partition: TopicPartition) -> MemoryLog:
        logs = self.topic(partition.topic).logs
        if not 0 <= partition.partition < len(logs):
            raise UnknownPartition(
                f"There is no partition {partition}: the topic has {len(logs)}, counted from 0."
            )
        return logs[partition.partition]

    def partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        return [
            TopicPartition(name, number)
            for name in sorted(topics)
            if name in self.topics
            for number in range(len(self.topics[name].logs))
        ]

    def group(self, name: str) -> MemoryGroup:
        group = self.groups.setdefault(name, MemoryGroup(name))
        group.expire(self.clock.monotonic())
        return group
