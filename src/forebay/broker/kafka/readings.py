"""Which partitions are read, how far, and what was taken from the client but not yet delivered."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from forebay.core.errors import InvalidRequest
from forebay.core.records import Offset, Record, TopicPartition, size_bytes


@dataclass(slots=True)
class Reading:
    """One partition. `start` is None until somebody says where to start.

    `moving`: the client does not yet read at `start`; what it brings until then is not wanted.
    `outside`: an offset that the log does not hold, not yet told to the owner.
    """

    start: Offset | None = None
    started: bool = False
    moving: bool = True
    paused: bool = False
    end: Offset | None = None
    outside: Offset | None = None

    def move(self, offset: Offset) -> None:
        self.start = offset
        self.moving = True
        self.end = self.outside = None


class Readings:
    def __init__(self) -> None:
        self._readings: dict[TopicPartition, Reading] = {}
        self._held: list[Record] = []
        self._changed = False

    def __len__(self) -> int:
        return len(self._readings)

    def __contains__(self, at: TopicPartition) -> bool:
        return at in self._readings

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._readings)

    def __getitem__(self, at: TopicPartition) -> Reading:
        reading = self._readings.get(at)
        if reading is None:
            raise InvalidRequest(f"{at} is not assigned to this consumer.")
        return reading

    def add(self, at: TopicPartition) -> None:
        self._readings[at] = Reading()
        self._changed = True

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        for at in partitions:
            self._readings.pop(at, None)
        self._drop_held(partitions)
        self._changed = True

    def clear(self) -> None:
        self._readings.clear()
        self._held.clear()

    def move(self, at: TopicPartition, offset: Offset) -> None:
        self[at].move(offset)
        self._drop_held([at])
        self._changed = True

    def moving(self) -> list[tuple[TopicPartition, Reading]]:
        """Partitions that the client must be told to read elsewhere."""
        return [
            (at, reading)
            for at, reading in self._readings.items()
            if reading.moving and reading.start is not None
        ]

    def started(self, at: TopicPartition) -> bool:
        reading = self._readings.get(at)
        return reading is not None and reading.started

    def reached_end(self, at: TopicPartition, end: Offset) -> None:
        """An end lies beyond the last record where transactions or compaction left gaps."""
        reading = self._readings.get(at)
        if reading is not None and not reading.moving:
            reading.end = end

    def fell_outside(self, at: TopicPartition, offset: Offset) -> None:
        reading = self._readings.get(at)
        if reading is not None and not reading.moving:
            reading.outside = offset

    def outside(self) -> list[tuple[TopicPartition, Reading, Offset]]:
        return [
            (at, reading, reading.outside)
            for at, reading in self._readings.items()
            if reading.outside is not None
        ]

    def first_held(self, at: TopicPartition) -> Offset | None:
        return next((record.offset for record in self._held if record.at == at), None)

    def has_something_to_deliver(self) -> bool:
        return any(not self._readings[record.at].paused for record in self._held)

    @property
    def holds_any(self) -> bool:
        return bool(self._held)

    def settle(self) -> None:
        """From here on, what changes concerns records that are on their way."""
        self._changed = False

    def deliver(self, fresh: list[Record], records_max: int, bytes_max: int) -> list[Record]:
        """What may be delivered now of the held and the fresh records; the rest is held."""
        if self._changed:
            fresh = [record for record in fresh if self._is_wanted(record)]
        waiting = [*self._held, *fresh] if self._held else fresh
        anything_paused = any(reading.paused for reading in self._readings.values())
        if len(waiting) <= records_max and not anything_paused and _fit(waiting, bytes_max):
            self._held = []
            return waiting
        return self._split(waiting, records_max, bytes_max)

    def put_back(self, records: list[Record]) -> None:
        self._held = [*records, *self._held]

    def _is_wanted(self, record: Record) -> bool:
        reading = self._readings.get(record.at)
        return reading is not None and not reading.moving

    def _split(self, waiting: list[Record], records_max: int, bytes_max: int) -> list[Record]:
        delivered: list[Record] = []
        held: list[Record] = []
        room = bytes_max
        full = False
        for record in waiting:
            if self._readings[record.at].paused:
                held.append(record)
                continue
            room -= size_bytes(record)
            full = full or len(delivered) == records_max or (room < 0 and bool(delivered))
            (held if full else delivered).append(record)
        self._held = held
        return delivered

    def _drop_held(self, partitions: Iterable[TopicPartition]) -> None:
        if self._held:
            gone = set(partitions)
            self._held = [record for record in self._held if record.at not in gone]


def _fit(records: Sequence[Record], bytes_max: int) -> bool:
    """Counted as no less than they are: a call for each record would be felt."""
    payloads = [len(record[0] or b"") + len(record[1] or b"") for record in records]
    headers = [4 * len(name) + len(value or b"") for record in records for name, value in record[2]]
    return sum(payloads) + sum(headers) <= bytes_max
