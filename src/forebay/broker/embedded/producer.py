import random
import time
from collections.abc import Sequence
from itertools import count
from queue import Empty, SimpleQueue

from forebay.broker.embedded.parts import Parts
from forebay.broker.embedded.topics import Topic
from forebay.broker.embedded.transaction import Row, Transaction
from forebay.broker.ownership import OwnerThread
from forebay.broker.port import Report
from forebay.broker.settings import ProducerSettings
from forebay.core.errors import Closed, ForebayError, Full, OutcomeUnknown, RecordTooLarge
from forebay.core.partitioning import partition_of
from forebay.core.records import HEADER_FRAME_BYTES, UNSET, Offset, Record, pack_headers

# Records without a key stay on one partition for a while: neighbours are cheaper to store.
KEYLESS_RUN = 100


class _Batch:
    """Records of one send: placed together, reported together."""

    __slots__ = (
        "_done",
        "deadline",
        "error",
        "is_given_up",
        "offsets",
        "places",
        "rows",
        "size",
        "token",
        "weight",
    )

    def __init__(self, token: object, deadline: float, done: "SimpleQueue[_Batch]") -> None:
        self.token = token
        self.deadline = deadline
        self.rows: list[Row] = []
        self.places: list[tuple[str, int]] = []
        self.offsets: list[Offset] = []
        self.error: ForebayError | None = None
        self.size = 0
        self.weight = 0
        self.is_given_up = False
        self._done = done

    def apply(self, transaction: Transaction) -> None:
        if not self.is_given_up:
            self.offsets = transaction.append(self.rows)

    def settle(self, error: ForebayError | None) -> None:
        self.error = error
        self._done.put(self)

    def reports(self) -> list[Report]:
        token, error = self.token, self.error
        offsets = self.offsets if error is None else [UNSET] * len(self.rows)
        new, report = tuple.__new__, Report
        return [
            new(report, (token, topic, partition, offset, row[1], error))
            for (topic, partition), offset, row in zip(self.places, offsets, self.rows, strict=True)
        ]


class EmbeddedProducer:
    def __init__(self, parts: Parts, settings: ProducerSettings) -> None:
        self._parts = parts
        self._settings = settings
        self._owner = OwnerThread("producer")
        self._done: SimpleQueue[_Batch] = SimpleQueue()
        self._open: dict[_Batch, None] = {}
        self._ready: list[Report] = []
        self._unsettled = 0
        self._pending_bytes = 0
        self._keyless = count(random.randrange(1 << 30))  # noqa: S311 - spreads load
        self._is_closed = False

    @property
    def outstanding(self) -> int:
        return self._unsettled + len(self._ready)

    def send(self, record: Record, token: object = None) -> None:
        self.send_many((record,), token)

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        self._check()
        self._collect()
        self._check_room()
        deadline = time.monotonic() + self._settings.delivery_timeout_seconds
        batch = _Batch(token, deadline, self._done)
        self._fill(batch, records)
        if not batch.rows:
            return 0
        self._parts.writer.submit(batch)
        self._open[batch] = None
        self._unsettled += batch.weight
        self._pending_bytes += batch.size
        return batch.weight

    def poll(self, timeout_seconds: float) -> list[Report]:
        self._check()
        if not self._collect() and not self._ready and self._open:
            self._wait_for_one(timeout_seconds)
        reports, self._ready = self._ready, []
        return reports

    def flush(self, timeout_seconds: float) -> int:
        self._check()
        deadline = time.monotonic() + timeout_seconds
        while self._open and (remaining := deadline - time.monotonic()) > 0:
            if not self._collect():
                self._wait_for_one(remaining)
        self._collect()
        return self._unsettled

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:
        if self._is_closed:
            return []
        self.flush(timeout_seconds)
        for batch in list(self._open):
            self._give_up(batch, "before the producer was closed")
        self._is_closed = True
        self._parts.forget(self)
        reports, self._ready = self._ready, []
        return reports

    # Sending

    def _fill(self, batch: _Batch, records: Sequence[Record]) -> None:
        """Check every record before any of them is on its way."""
        now_ms = int(self._parts.clock.now() * 1000)
        version = self._parts.writer.topics_version
        limit = self._parts.record_bytes_max
        topic: Topic | None = None
        for record in records:
            value, key, number = record.value, record.key, record.partition
            if topic is None or topic.name != record.topic:
                topic = self._parts.topics.get(record.topic, version)
            packed = pack_headers(record.headers)
            size = len(value or b"") + len(key or b"")
            if packed is not None:
                size += len(packed) - HEADER_FRAME_BYTES * len(record.headers)
            if size > limit:
                raise _too_large(record, size, limit)
            if number == UNSET:
                number = self._choose(topic, key)
            sent_ms = now_ms if record.timestamp_ms == UNSET else record.timestamp_ms
            batch.rows.append((topic.partition_id(number), sent_ms, key, value, packed, size))
            batch.places.append((topic.name, number))
            batch.size += size
        batch.weight = len(batch.rows)

    def _choose(self, topic: Topic, key: bytes | None) -> int:
        partitions = len(topic.partition_ids)
        if key is None:
            return next(self._keyless) // KEYLESS_RUN % partitions
        return partition_of(key, partitions)

    def _check_room(self) -> None:
        settings = self._settings
        if (
            self._unsettled >= settings.pending_records_max
            or self._pending_bytes >= settings.pending_bytes_max
        ):
            raise Full(
                f"{self._unsettled} records ({self._pending_bytes} bytes) wait to be stored. This "
                f"one was not taken. Poll for reports, then send it again."
            )

    # Reports

    def _collect(self) -> bool:
        """Take over what the writer has settled, without waiting."""
        found = False
        while not self._done.empty():
            self._take_over(self._done.get_nowait())
            found = True
        return found

    def _wait_for_one(self, timeout_seconds: float) -> None:
        oldest = next(iter(self._open))
        patience = min(timeout_seconds, max(0.0, oldest.deadline - time.monotonic()))
        try:
            self._take_over(self._done.get(timeout=patience))
        except Empty:
            self._give_up_late_ones(time.monotonic())
        self._collect()

    def _take_over(self, batch: _Batch) -> None:
        if batch not in self._open:
            return
        del self._open[batch]
        self._unsettled -= batch.weight
        self._pending_bytes -= batch.size
        self._ready += batch.reports()

    def _give_up_late_ones(self, now: float) -> None:
        for batch in list(self._open):
            if batch.deadline > now:
                return
            self._give_up(batch, f"within {self._settings.delivery_timeout_seconds:g} s")

    def _give_up(self, batch: _Batch, when: str) -> None:
        batch.is_given_up = True
        batch.error = OutcomeUnknown(
            f"The write was not acknowledged {when}, so it may or may not be there. "
            f"{self._parts.writer.who_is_writing()}"
        )
        self._take_over(batch)

    def _check(self) -> None:
        if self._is_closed:
            raise Closed("This producer is closed. Open another one.")
        self._parts.fork.check()
        self._owner.check()


def _too_large(record: Record, size: int, limit: int) -> RecordTooLarge:
    return RecordTooLarge(
        f"A record for {record.topic} has {size} bytes; this broker takes at most {limit}. Nothing "
        f"of this send was stored. Keep large content elsewhere and send a reference to it."
    )
