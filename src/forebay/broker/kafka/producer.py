import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client

from forebay.broker.kafka.cluster import Cluster
from forebay.broker.kafka.configuration import BATCH_BYTES, for_producer
from forebay.broker.kafka.errors import translate
from forebay.broker.kafka.ownership import Ownership
from forebay.broker.kafka.questions import refused, unknown_partition
from forebay.broker.port import Report
from forebay.broker.settings import ProducerSettings
from forebay.core.errors import (
    Full,
    RecordTooLarge,
    UnknownPartition,
    UnknownTopic,
)
from forebay.core.records import UNSET, Record, size_bytes

# Short, so that a close from a signal handler ends a poll.
_SLICE_SECONDS = 0.1
# What is shorter the client does not wait at all, and this loop would spin.
_SHORTEST_SECONDS = 0.001
_LOOK_SECONDS = 5.0
_PURGE_SECONDS = 10.0
# Beside a record's own bytes, its batch's header and the lengths in front of its fields.
_FRAME_BYTES = 128
_HEADER_FRAME_BYTES = 10


@dataclass(slots=True)
class KnownTopic:
    """`narrow`: a full batch of ours would be refused, so less than one batch is ever pending."""

    partitions: int
    batch_bytes_max: int | None
    pending_bytes: int = 0

    @property
    def narrow(self) -> bool:
        return self.batch_bytes_max is not None and self.batch_bytes_max < BATCH_BYTES

    def takes(self, weight: int) -> bool:
        return self.batch_bytes_max is None or weight <= self.batch_bytes_max

    def has_room(self, weight: int) -> bool:
        limit = self.batch_bytes_max or 0
        return not self.pending_bytes or self.pending_bytes + weight <= limit


class KafkaProducer:
    def __init__(self, cluster: Cluster, settings: ProducerSettings) -> None:
        connection = cluster.connection
        self._record_bytes_max = cluster.settings.record_bytes_max
        self._questions = cluster.questions
        self._connection = connection
        self._ownership = Ownership("producer")
        self._topics: dict[str, KnownTopic] = {}
        self._reports: list[Report] = []
        self._outstanding = 0
        configuration = for_producer(cluster.settings, settings)
        try:
            self._client = Client({**configuration, "error_cb": connection.on_error})
        except KafkaException as error:
            raise refused(error, connection) from error

    @property
    def outstanding(self) -> int:
        return self._outstanding

    def send(self, record: Record, token: object = None) -> None:
        self._claim_for_sending()
        self._check(record)
        if not self._accept(record, token):
            raise self._full()

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        self._claim_for_sending()
        for record in records:
            self._check(record)
        for taken, record in enumerate(records):
            if not self._accept(record, token):
                if taken == 0:
                    raise self._full()
                return taken
        return len(records)

    def poll(self, timeout_seconds: float) -> list[Report]:
        with self._ownership.busy():
            self._serve(timeout_seconds)
            return self._hand_out()

    def flush(self, timeout_seconds: float) -> int:
        with self._ownership.busy():
            return self._flush(timeout_seconds)

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:
        ownership = self._ownership
        if ownership.closed or not ownership.may_close_now():
            return []
        with ownership.busy():
            self._flush(timeout_seconds)
            self._client.purge()
            self._flush(_PURGE_SECONDS)
        ownership.closed = True
        return self._hand_out()

    def _claim_for_sending(self) -> None:
        self._ownership.claim()
        if self._ownership.closing:
            raise self._ownership.is_closed()

    def _check(self, record: Record) -> KnownTopic:
        topic = self._topics.get(record.topic) or self._learn(record.topic)
        if record.partition != UNSET and not 0 <= record.partition < topic.partitions:
            topic = self._learn(record.topic)
            if not 0 <= record.partition < topic.partitions:
                raise unknown_partition(record.at, topic.partitions)
        size = size_bytes(record)
        if size > self._record_bytes_max:
            raise RecordTooLarge(
                f"A record of {size} bytes for topic {record.topic} was not sent: the limit is "
                f"{self._record_bytes_max} (record_bytes_max). Its neighbours are not affected."
            )
        weight = _weight(record, size)
        if not topic.takes(weight):
            topic = self._learn(record.topic)
        if not topic.takes(weight):
            raise RecordTooLarge(
                f"A record of {size} bytes for topic {record.topic} was not sent: with its frame "
                f"it is above the topic's max.message.bytes of {topic.batch_bytes_max}. Its "
                f"neighbours are not affected."
            )
        return topic

    def _learn(self, name: str) -> KnownTopic:
        """Asked once per topic: librdkafka itself finds out by reports, much later.

        It is made to look too, for it may remember a topic of that name as deleted.
        """
        partitions = len(self._questions.topic(name).partitions)
        limit = self._questions.settings_of(name).get("max.message.bytes")
        try:
            self._client.list_topics(name, timeout=_LOOK_SECONDS)
        except KafkaException as error:
            raise translate(error.args[0], f"Looking up topic {name!r}") from error
        topic = KnownTopic(partitions, None if limit is None else int(limit))
        self._topics[name] = topic
        return topic

    def _accept(self, record: Record, token: object) -> bool:
        topic = self._topics[record.topic]
        if not topic.narrow:
            return self._produce(record, partial(self._delivered, token))
        weight = _weight(record, size_bytes(record))
        if not topic.has_room(weight):
            return False
        taken = self._produce(record, partial(self._delivered_narrow, topic, weight, token))
        topic.pending_bytes += weight if taken else 0
        return taken

    def _produce(self, record: Record, on_delivery: Callable[..., None]) -> bool:
        """Counted first: a signal handler that closes meanwhile must find the count right."""
        taken = False
        self._outstanding += 1
        try:
            self._client.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=on_delivery,
                timestamp=max(0, record.timestamp_ms),
                headers=list(record.headers) if record.headers else None,
            )
            taken = True
        except BufferError:
            pass
        except KafkaException as error:
            raise translate(error.args[0], f"Sending to topic {record.topic}") from error
        finally:
            self._outstanding -= not taken
        return taken

    def _full(self) -> Full:
        self._connection.check_admission()
        return Full(
            f"{self._outstanding} records wait for their reports, and no more fit. Poll for "
            f"reports, then send again."
        )

    def _delivered_narrow(
        self,
        topic: KnownTopic,
        weight: int,
        token: object,
        error: KafkaError | None,
        message: Message,
    ) -> None:
        topic.pending_bytes -= weight
        self._delivered(token, error, message)

    def _delivered(self, token: object, error: KafkaError | None, message: Message) -> None:
        name = message.topic() or ""
        partition = message.partition()
        at = UNSET if partition is None else partition
        if error is None:
            offset, (_, timestamp) = message.offset(), message.timestamp()
            known = UNSET if offset is None else offset
            self._reports.append(Report(token, name, at, known, timestamp, None))
            return
        problem = translate(error, f"Sending to {name}[{at}]")
        if isinstance(problem, (UnknownTopic, UnknownPartition, RecordTooLarge)):
            self._topics.pop(name, None)
        self._reports.append(Report(token, name, at, UNSET, UNSET, problem))

    def _serve(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        self._client.poll(0)
        while not self._reports and not self._ownership.closing:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                self._connection.check_admission()
                return
            self._client.poll(max(_SHORTEST_SECONDS, min(_SLICE_SECONDS, remaining)))

    def _hand_out(self) -> list[Report]:
        reports, self._reports = self._reports, []
        self._outstanding -= len(reports)
        if any(report.error is None for report in reports):
            self._connection.answered()
        return reports

    def _flush(self, timeout_seconds: float) -> int:
        deadline = time.monotonic() + timeout_seconds
        while unreported := len(self._client):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return unreported
            self._client.flush(min(_SLICE_SECONDS, remaining))
        return 0


def _weight(record: Record, size: int) -> int:
    return size + _FRAME_BYTES + _HEADER_FRAME_BYTES * len(record.headers)
