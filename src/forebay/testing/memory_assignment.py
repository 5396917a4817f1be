"""The partitions one consumer of a `MemoryBroker` reads, and how far it is."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from forebay.core.errors import (
    ForebayError,
    InvalidRequest,
    NoCommittedOffset,
    OffsetOutOfRange,
    UnknownTopic,
)
from forebay.core.records import Offset, Record, TopicPartition, size_bytes
from forebay.testing.memory_log import MemoryStore


@dataclass(slots=True)
class Reader:
    """`stopped` once its error was raised; a seek sets it going again."""

    next_offset: Offset | None
    paused: bool = False
    stopped: bool = False
    at_end: bool = False

    def seek(self, offset: Offset) -> None:
        self.next_offset, self.stopped, self.at_end = offset, False, False


class MemoryAssignment:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._readers: dict[TopicPartition, Reader] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._readers)

    def add(self, positions: Mapping[TopicPartition, Offset | None]) -> None:
        self._readers.update({partition: Reader(at) for partition, at in positions.items()})

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        self._readers = {p: r for p, r in self._readers.items() if p not in partitions}

    def reader(self, partition: TopicPartition) -> Reader:
        if partition not in self._readers:
            raise InvalidRequest(
                f"{partition} is not assigned to this consumer, which reads "
                f"{', '.join(map(str, sorted(self._readers))) or 'nothing'}."
            )
        return self._readers[partition]

    def raise_what_stops(self) -> None:
        for partition, reader in self._readers.items():
            if not reader.stopped and (error := self._what_stops(partition, reader.next_offset)):
                reader.stopped = True
                raise error

    def read(self, max_records: int, max_bytes: int) -> list[Record]:
        """Whoever delivered goes to the back of the queue, so that no partition starves."""
        taken: list[Record] = []
        for partition, reader in list(self._readers.items()):
            if reader.paused or reader.stopped or reader.next_offset is None:
                continue
            log = self._store.log(partition)
            waiting = log.read(reader.next_offset, max_records - len(taken))
            for record in waiting:
                max_bytes -= size_bytes(record)
                if taken and max_bytes < 0:
                    return taken
                taken.append(record)
                reader.next_offset = record.offset + 1
            reader.at_end = reader.next_offset == log.end
            if waiting:
                self._readers[partition] = self._readers.pop(partition)
        return taken

    def _what_stops(self, partition: TopicPartition, offset: Offset | None) -> ForebayError | None:
        if offset is None:
            return NoCommittedOffset(
                f"The group never committed {partition} and its reader was not told where to "
                f"start. Seek it when it is assigned."
            )
        try:
            low, end = self._store.log(partition).watermarks
        except UnknownTopic as gone:
            return gone
        if not low <= offset <= end:
            return OffsetOutOfRange(partition, offset, low, end)
        return None
