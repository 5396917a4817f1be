from collections import deque
from collections.abc import Sequence
from itertools import count

from forebay.broker.ownership import OwnerThread
from forebay.broker.port import Report
from forebay.broker.settings import ProducerSettings
from forebay.core.errors import Closed, Full, RecordTooLarge, Unavailable
from forebay.core.partitioning import partition_of
from forebay.core.records import UNSET, Record, TopicPartition, size_bytes
from forebay.testing.memory_log import MemoryStore


class MemoryProducer:
    """Stores at once; the buffer that can be full is that of reports nobody has polled."""

    def __init__(self, store: MemoryStore, settings: ProducerSettings, bytes_max: int) -> None:
        self._store = store
        self._settings = settings
        self._bytes_max = bytes_max
        self._owner = OwnerThread("producer")
        self._reports: deque[Report] = deque()
        self._next_keyless = count()
        self._closed = False

    @property
    def outstanding(self) -> int:
        return len(self._reports)

    def send(self, record: Record, token: object = None) -> None:
        self.send_many([record], token)

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        self._enter()
        with self._store.changed:
            placed = [self._place(record) for record in records]
            room = self._settings.pending_records_max - self.outstanding
            if records and room <= 0:
                raise Full(f"{self.outstanding} reports wait; poll the producer, then send again.")
            self._reports.extend(self._append(record, token) for record in placed[:room])
            self._store.changed.notify_all()
        return min(room, len(records))

    def poll(self, timeout_seconds: float) -> list[Report]:  # noqa: ARG002 - the port's
        self._enter()
        reports = list(self._reports)
        self._reports.clear()
        return reports

    def flush(self, timeout_seconds: float) -> int:  # noqa: ARG002 - the port's
        self._enter()
        return 0

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:  # noqa: ARG002 - the port's
        if self._closed:
            return []
        self._owner.check()
        return self.shut()

    def shut(self) -> list[Report]:
        self._closed = True
        reports = list(self._reports)
        self._reports.clear()
        return reports

    def _enter(self) -> None:
        if self._closed:
            raise Closed("This producer is closed. Ask the broker for a new one.")
        self._owner.check()

    def _place(self, record: Record) -> Record:
        """The record with its partition and timestamp, checked."""
        partition = record.partition
        if partition == UNSET:
            partition = self._choose(record)
        self._store.log(TopicPartition(record.topic, partition))
        if (size := size_bytes(record)) > self._bytes_max:
            raise RecordTooLarge(
                f"A record for {record.topic} has {size:,} bytes; the broker takes at most "
                f"{self._bytes_max:,}. Nothing of this call was sent."
            )
        timestamp_ms = record.timestamp_ms
        if timestamp_ms == UNSET:
            timestamp_ms = int(self._store.clock.now() * 1000)
        return record._replace(partition=partition, timestamp_ms=timestamp_ms)

    def _choose(self, record: Record) -> int:
        partitions = len(self._store.topic(record.topic).logs)
        if record.key is None:
            return next(self._next_keyless) % partitions
        return partition_of(record.key, partitions)

    def _append(self, record: Record, token: object) -> Report:
        if record.topic in self._store.refused:
            error = Unavailable(f"Writes to {record.topic} are refused until accept_writes.")
            return Report(token, record.topic, record.partition, UNSET, UNSET, error)
        stored = self._store.log(record.at).append(record)
        return Report(
            token, stored.topic, stored.partition, stored.offset, stored.timestamp_ms, None
        )
