"""Joins a group, is given and loses partitions, and starts each where it belongs."""

import time
from collections.abc import Callable, Collection, Sequence

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from forebay.broker.kafka.cluster import Cluster
from forebay.broker.kafka.errors import translate
from forebay.broker.kafka.questions import partition_of
from forebay.broker.kafka.reader import Reader
from forebay.broker.port import Rebalance
from forebay.core.errors import ForebayError, NoCommittedOffset
from forebay.core.records import TopicPartition

# A rebalance, and what else is read, waits so long for it; then it is asked again.
_LOOKUP_SECONDS = 1.0
_LOOKUP_PAUSE_SECONDS = 0.5


class Membership:
    """Callbacks run inside the client's poll. An exception there would cost the records of that
    poll, so all are kept with the reader and raised from our poll afterwards.
    """

    def __init__(self, cluster: Cluster, group: str, client: Client, reader: Reader) -> None:
        self._cluster = cluster
        self._group = group
        self._client = client
        self._reader = reader
        self._readings = reader.readings
        self._listener: Rebalance | None = None
        self._untold: set[TopicPartition] = set()
        self._ask_again_at = 0.0

    @property
    def joined(self) -> bool:
        return self._listener is not None

    def join(self, topics: Collection[str], listener: Rebalance) -> None:
        try:
            self._client.subscribe(
                sorted(topics),
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )
        except KafkaException as error:
            raise translate(error.args[0], f"Joining group {self._group!r}") from error
        self._listener = listener
        self._reader.in_group = True

    def start_what_waits(self) -> None:
        """Starts and seeks what was asked for since, and what no coordinator told us about yet."""
        if self._untold and time.monotonic() > self._ask_again_at:
            self._begin(sorted(self._untold))
        self._reader.move()

    def _on_assign(self, _client: Client, given: Sequence[ClientPartition]) -> None:
        """The client is told later where to start each; empty deltas are not passed on.

        What else was sought meanwhile is moved later: records of it are on their way.
        """
        self._client.incremental_assign([])
        partitions = _ours(given)
        for at in partitions:
            self._readings.add(at)
        self._untold.update(partitions)
        if partitions:
            self._begin(partitions)
            self._reader.move(partitions)

    def _on_revoke(self, _client: Client, taken: Sequence[ClientPartition]) -> None:
        told = self._told(taken)
        if told and self._listener is not None:
            self._cluster.emit(
                "consumer.revoked", consumer_group=self._group, partitions=_named(told)
            )
            self._tell(self._listener.revoked, told)
        self._forget(taken)

    def _on_lost(self, _client: Client, taken: Sequence[ClientPartition]) -> None:
        told = self._told(taken)
        self._forget(taken)
        if told and self._listener is not None:
            self._cluster.emit("consumer.lost", consumer_group=self._group, partitions=_named(told))
            self._tell(self._listener.lost, told)

    def _begin(self, partitions: Sequence[TopicPartition]) -> None:
        try:
            committed = self._cluster.questions.committed(
                self._group, partitions, within_seconds=_LOOKUP_SECONDS
            )
        except ForebayError as error:
            self._ask_again_at = time.monotonic() + _LOOKUP_PAUSE_SECONDS
            self._reader.complaints.append(error)
            return
        self._untold.difference_update(partitions)
        for at in partitions:
            if (found := committed[at]) is not None:
                self._readings.move(at, found.offset)
        self._cluster.emit(
            "consumer.assigned", consumer_group=self._group, partitions=_named(partitions)
        )
        if self._listener is not None:
            self._tell(self._listener.assigned, committed)
        self._reader.complaints.extend(
            _no_start(self._group, at) for at in partitions if self._readings[at].start is None
        )

    def _tell(self, told: Callable[..., None], what: object) -> None:
        try:
            told(what)
        except Exception as error:  # noqa: BLE001  the owner's code; raised from poll instead
            self._reader.raised.append(error)

    def _told(self, places: Sequence[ClientPartition]) -> list[TopicPartition]:
        return [at for at in _ours(places) if at in self._readings and at not in self._untold]

    def _forget(self, places: Sequence[ClientPartition]) -> None:
        partitions = _ours(places)
        self._untold.difference_update(partitions)
        self._reader.let_go(partitions)


def _ours(places: Sequence[ClientPartition]) -> list[TopicPartition]:
    return [partition_of(place) for place in places]


def _named(partitions: Sequence[TopicPartition]) -> list[str]:
    return [str(at) for at in partitions]


def _no_start(group: str, at: TopicPartition) -> NoCommittedOffset:
    return NoCommittedOffset(
        f"Group {group!r} never committed {at}, and nobody said where to start. It is not read; "
        f"seek to an offset, or reset the group's offsets."
    )
