"""Takes records from the client, and tells it where to read."""

# ruff: noqa: SLF001  librdkafka's own error codes begin with an underscore

from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError

from forebay.broker.kafka.cluster import Cluster
from forebay.broker.kafka.errors import translate
from forebay.broker.kafka.questions import OFFSETS, client_partition
from forebay.broker.kafka.readings import Readings
from forebay.core.errors import OffsetOutOfRange, Unavailable
from forebay.core.records import Offset, Record, TopicPartition

_new = tuple.__new__
_OUT_OF_RANGE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
_BATCH_RECORDS_MAX = 100_000


class Reader:
    """`complaints` are raised one by one while there is nothing to deliver, so that what can be
    read goes on; what a listener `raised` comes out of the poll it happened in.
    """

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self.readings = Readings()
        self.complaints: deque[Exception] = deque()
        self.raised: deque[Exception] = deque()
        self.in_group = False
        self._cluster = cluster
        self._client = client

    def move(self, only: Collection[TopicPartition] | None = None) -> None:
        """Let go and take again: the client's own seek fails where reading stopped at an error.

        The client remembers pauses over that, and over revocations; so each start sets its own.
        """
        for at, reading in self.readings.moving():
            if only is not None and at not in only:
                continue
            if reading.started:
                self._client.incremental_unassign([client_partition(at)])
            reading.started, reading.moving = reading.start in OFFSETS, False
            if not reading.started:  # negative offsets mean something else to the client
                reading.outside = reading.start
                continue
            place = client_partition(at, reading.start or 0)
            self._client.incremental_assign([place])
            (self._client.pause if reading.paused else self._client.resume)([place])

    def let_go(self, partitions: Sequence[TopicPartition]) -> None:
        """The client refuses to let go of what it was never told to read."""
        started = [client_partition(at) for at in partitions if self.readings.started(at)]
        self.readings.remove(partitions)
        self._client.incremental_unassign(started)

    def take(self, timeout_seconds: float, records_max: int, bytes_max: int) -> list[Record]:
        """Waits for the first message only: the client's own batch call waits for a full batch.

        Nothing more is taken while something is held, or a small `bytes_max` would have us hold
        ever more.
        """
        self.readings.settle()
        holds = self.readings.has_something_to_deliver()
        first = self._client.poll(0 if holds else timeout_seconds)
        if first is None and not self.readings.holds_any:
            return []
        messages: list[Any] = [] if first is None else [first]
        if messages and not holds and records_max > 1:
            messages += self._client.consume(min(records_max, _BATCH_RECORDS_MAX) - 1, 0)
        records = _records(messages)
        delivered = self.readings.deliver(records, records_max, bytes_max)
        if len(records) < len(messages):
            self._notice(messages)
        return delivered

    def position(self, at: TopicPartition) -> Offset | None:
        """The client counts transaction markers it passed; an end beyond the last record too."""
        reading = self.readings[at]
        held = self.readings.first_held(at)
        if held is not None or reading.moving or not reading.started:
            return reading.start if held is None else held
        (place,) = self._client.position([client_partition(at)])
        return reading.start if place.offset < 0 else place.offset

    def at_end(self, at: TopicPartition) -> bool:
        end = self.readings[at].end
        return end is not None and self.position(at) == end

    def raise_for_listener(self) -> None:
        if self.raised:
            raise self.raised.popleft()

    def raise_complaint(self) -> None:
        for at, reading, offset in self.readings.outside():
            reading.outside = None
            try:
                watermarks = self._cluster.questions.watermarks([at])[at]
            except Unavailable:
                reading.outside = offset
                raise
            raise OffsetOutOfRange(at, offset, *watermarks)
        if self.complaints:
            raise self.complaints.popleft()

    def _notice(self, messages: Sequence[Any]) -> None:
        """After the records, because an end lies beyond them."""
        for message in messages:
            if message.error() is not None:
                self._notice_one(message.error(), message)

    def _notice_one(self, error: KafkaError, message: Any) -> None:
        at = TopicPartition(message.topic() or "", message.partition())
        if error.code() == KafkaError._PARTITION_EOF:
            self.readings.reached_end(at, message.offset())
        elif error.code() in _OUT_OF_RANGE:
            self.readings.fell_outside(at, message.offset())
        elif self._concerns_us(error):
            self.complaints.append(translate(error, f"Reading {at.topic or 'from the group'}"))

    def _concerns_us(self, error: KafkaError) -> bool:
        """Losing the group for not polling is told as a loss. Without a group none is missed."""
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            return False
        return self.in_group or error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED


def _records(messages: Sequence[Any]) -> list[Record]:
    """Built by the bare tuple's constructor: the named one costs more than all the fields."""
    return [
        _new(
            Record,
            (
                message.value(),
                message.key(),
                message.headers() or (),
                message.topic(),
                message.partition(),
                message.offset(),
                message.timestamp()[1],
            ),
        )
        for message in messages
        if message.error() is None
    ]
