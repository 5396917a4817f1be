"""Where a consumer stands in each of its partitions, and fetching from there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import apsw

from forebay.broker.embedded.schema import OFFSET_MASK, row_id
from forebay.core.errors import ForebayError, NoCommittedOffset, OffsetOutOfRange, UnknownTopic
from forebay.core.records import UNSET, Offset, Record, StoredRecord, TopicPartition, size_bytes

_FETCH = (
    "SELECT value, key, headers, id, timestamp_ms FROM log "
    "WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
)


@dataclass(slots=True)
class Place:
    partition: TopicPartition
    partition_id: int
    topic_id: int
    position: Offset
    end: Offset = UNSET
    is_paused: bool = False
    is_stuck: bool = False


class Reader:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._places: dict[TopicPartition, Place] = {}
        self._turns: list[Place] = []
        self._marks_sql = ""

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self._places)

    @property
    def topic_ids(self) -> set[int]:
        return {place.topic_id for place in self._places.values()}

    def place(self, partition: TopicPartition) -> Place:
        return self._places[partition]

    def has(self, partition: TopicPartition) -> bool:
        return partition in self._places

    def add(self, places: Iterable[Place]) -> None:
        self._places.update({place.partition: place for place in places})
        self._arrange()

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._places.pop(partition, None)
        self._arrange()

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        place = self._places[partition]
        place.position, place.end, place.is_stuck = offset, UNSET, False

    def fetch(self, records_max: int, bytes_max: int) -> list[Record]:
        """What is there now, in one snapshot, beginning with the partition that waited longest."""
        if not self._places:
            return []
        self._connection.execute("BEGIN")
        try:
            marks = self._marks()
            self._look_for_trouble(marks)
            return self._take(marks, records_max, bytes_max)
        finally:
            self._connection.execute("COMMIT")

    def _marks(self) -> dict[int, tuple[Offset, Offset, int]]:
        return {
            id: (low, end, largest)
            for id, low, end, largest in self._connection.execute(self._marks_sql)
        }

    def _look_for_trouble(self, marks: Mapping[int, tuple[Offset, Offset, int]]) -> None:
        """Before anything is taken, so that an error costs no record. Each trouble tells once."""
        for place in self._places.values():
            if not place.is_stuck and (trouble := _trouble(place, marks.get(place.partition_id))):
                place.is_stuck = True
                raise trouble

    def _take(
        self, marks: Mapping[int, tuple[Offset, Offset, int]], records_max: int, bytes_max: int
    ) -> list[Record]:
        taken: list[Record] = []
        room = bytes_max
        for turn, place in enumerate(self._turns):
            if place.is_paused or place.is_stuck:
                continue
            _, place.end, largest = marks[place.partition_id]
            if place.position >= place.end:
                continue
            wanted = records_max - len(taken)
            found = self._read(place, wanted)
            used = largest * len(found)
            fitting = found
            if used > room:
                fitting, used = _fitting(found, room, at_least_one=not taken)
            room -= used
            _advance(place, fitting, is_all=len(fitting) == len(found) < wanted)
            taken += fitting
            if len(taken) >= records_max or len(fitting) < len(found):
                self._turns = self._turns[turn + 1 :] + self._turns[: turn + 1]
                break
        return taken

    def _read(self, place: Place, count: int) -> list[Record]:
        topic, partition = place.partition
        first = row_id(place.partition_id, place.position)
        end = row_id(place.partition_id, place.end)
        new, record, mask = tuple.__new__, StoredRecord, OFFSET_MASK
        return [
            new(record, (value, key, headers, topic, partition, id & mask, timestamp_ms))
            for value, key, headers, id, timestamp_ms in self._connection.execute(
                _FETCH, (first, end, count)
            )
        ]

    def _arrange(self) -> None:
        self._turns = list(self._places.values())
        topics = ",".join(str(id) for id in sorted(self.topic_ids))
        self._marks_sql = f"SELECT id, low, next, largest FROM partition WHERE topic IN ({topics})"  # noqa: S608 - numbers


def _trouble(place: Place, marks: tuple[Offset, Offset, int] | None) -> ForebayError | None:
    if marks is None:
        return UnknownTopic(
            f"Topic {place.partition.topic} was deleted while {place.partition} was read. The "
            f"other partitions go on. Stop reading it, or create the topic again."
        )
    if place.position == UNSET:
        return NoCommittedOffset(
            f"The group has no committed offset for {place.partition}, and its reader was not told "
            f"where to start. Seek when it is assigned, or set one: forebay groups reset."
        )
    low, end, _ = marks
    if not low <= place.position <= end:
        return OffsetOutOfRange(place.partition, place.position, low, end)
    return None


def _fitting(records: list[Record], room: int, *, at_least_one: bool) -> tuple[list[Record], int]:
    """The first records that fit into the room, and their bytes."""
    used = 0
    for count, record in enumerate(records):
        size = size_bytes(record)
        if used + size > room and not (at_least_one and count == 0):
            return records[:count], used
        used += size
    return records, used


def _advance(place: Place, delivered: list[Record], *, is_all: bool) -> None:
    """Past what is delivered; past the gaps before the end too, once all was read."""
    if is_all:
        place.position = place.end
    elif delivered:
        place.position = delivered[-1].offset + 1
