"""Asks Kafka and waits, for a bounded time, for the answer."""

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswerYet
from functools import cached_property
from typing import TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec, TimestampSpec
from confluent_kafka.admin._metadata import ClusterMetadata, TopicMetadata
from confluent_kafka.admin._topic import TopicDescription
from confluent_kafka.cimpl import OFFSET_SPEC_EARLIEST, OFFSET_SPEC_LATEST

from forebay.broker.kafka.configuration import for_client
from forebay.broker.kafka.connection import Connection
from forebay.broker.kafka.errors import translate
from forebay.broker.port import Watermarks
from forebay.broker.settings import KafkaSettings
from forebay.core.errors import (
    ForebayError,
    OutcomeUnknown,
    Rejected,
    Unavailable,
    UnknownPartition,
    UnknownTopic,
    Unusable,
)
from forebay.core.records import CommittedOffset, Offset, TopicPartition
from forebay.core.topics import check_name

Answer = TypeVar("Answer")
Key = TypeVar("Key")

OFFSETS = range(2**63)

ANSWER_SECONDS = 10.0
_SLICE_SECONDS = 0.25
_AGAIN_SECONDS = 0.05
# Longer than any way there and back, and than a client's pause before it connects again.
_LOOK_SECONDS = 2.0
# A topic made on one node is known to the others a moment later.
_SPREAD_SECONDS = 0.3


class Questions:
    """One admin client, kept for as long as answers may come. May be shared between threads."""

    def __init__(self, settings: KafkaSettings, connection: Connection) -> None:
        self._settings = settings
        self._connection = connection

    @cached_property
    def _client(self) -> AdminClient:
        configuration = for_client(self._settings)
        configuration["error_cb"] = self._connection.on_error
        try:
            return AdminClient(configuration)
        except KafkaException as error:
            raise refused(error, self._connection) from error

    def ask(
        self,
        subject: str,
        question: Callable[[AdminClient], Future[Answer]],
        within_seconds: float = ANSWER_SECONDS,
    ) -> Answer:
        """Repeats until answered: only for what may be asked twice."""
        answers = self.ask_all(subject, lambda client: {subject: question(client)}, within_seconds)
        return answers[subject]

    def ask_all(
        self,
        subject: str,
        question: Callable[[AdminClient], Mapping[Key, Future[Answer]]],
        within_seconds: float = ANSWER_SECONDS,
    ) -> dict[Key, Answer]:
        deadline = time.monotonic() + within_seconds
        while True:
            try:
                futures = question(self._client)
                return {key: self._wait(subject, futures[key], deadline) for key in futures}
            except Unavailable:
                if time.monotonic() > deadline or self._is_lost():
                    self._start_over()
                    raise
                time.sleep(_AGAIN_SECONDS)

    def _start_over(self) -> None:
        """With the next question. A node that was fenced is missing from one answer's metadata, and
        a client that knows no other node has then forgotten all of them, for good.
        """
        self.__dict__.pop("_client", None)

    def tell(self, subject: str, order: Callable[[AdminClient], Future[Answer]]) -> Answer:
        """Asks once, for what must not happen twice."""
        return self._wait(subject, order(self._client), time.monotonic() + ANSWER_SECONDS)

    def metadata(self, topic: str | None = None) -> ClusterMetadata:
        """Each try is given longer: an answer that comes after its try is thrown away."""
        deadline = time.monotonic() + ANSWER_SECONDS
        patience = _SLICE_SECONDS
        while True:
            try:
                found = self._client.list_topics(topic, timeout=patience)
            except KafkaException as error:
                self._client.poll(0)
                self.check_reachable()
                if time.monotonic() > deadline:
                    self._start_over()
                    raise self._connection.unreachable() from error
                patience *= 2
            else:
                self._connection.answered()
                return found

    def check_reachable(self) -> None:
        """Raises what keeps us out; a broker that counts as lost may be back, so it is asked."""
        try:
            self._connection.check()
        except Unavailable:
            if not self._answers():
                self._start_over()
                raise

    def topic(self, name: str) -> TopicMetadata:
        """Raises UnknownTopic, InvalidName, or AccessDenied."""
        check_name(name)
        deadline = time.monotonic() + _SPREAD_SECONDS
        while True:
            found = self.metadata(name).topics[name]
            if found.error is None:
                return found
            problem = translate(found.error, f"Looking up topic {name!r}")
            if not isinstance(problem, (UnknownTopic, Unavailable)) or time.monotonic() > deadline:
                raise problem
            time.sleep(_AGAIN_SECONDS)

    def describe(self, topics: Collection[str]) -> dict[str, Future[TopicDescription]]:
        """Asks and does not wait."""
        return self._client.describe_topics(TopicCollection(list(topics)))

    def settings_of(self, topic: str) -> dict[str, str]:
        """The topic's configuration; empty where we may not look, or the broker does not tell."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        try:
            entries = self.ask(
                f"Reading the settings of topic {topic!r}",
                lambda client: client.describe_configs([resource])[resource],
            )
        except (Unusable, Rejected):
            return {}
        return {name: e.value for name, e in entries.items() if e.value is not None}

    def watermarks(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]:
        low = self.offsets(partitions, OFFSET_SPEC_EARLIEST)
        end = self.end_offsets(partitions)
        return {partition: Watermarks(low[partition], end[partition]) for partition in partitions}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Offset]:
        return self.offsets(partitions, OFFSET_SPEC_LATEST)

    def offsets(
        self, partitions: Collection[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, Offset]:
        """Raises UnknownTopic and UnknownPartition, which the request itself learns too late."""
        if not partitions:
            return {}
        self.check_partitions(partitions)
        spec: OffsetSpec = TimestampSpec(timestamp_ms)
        asked = {client_partition(at): spec for at in partitions}
        level = IsolationLevel.READ_UNCOMMITTED
        found = self.ask_all(
            "Reading offsets",
            lambda client: client.list_offsets(asked, isolation_level=level),
        )
        return {partition_of(place): answer.offset for place, answer in found.items()}

    def check_partitions(self, partitions: Collection[TopicPartition]) -> None:
        for name in {at.topic for at in partitions}:
            known = self.topic(name).partitions
            for at in partitions:
                if at.topic == name and at.partition not in known:
                    raise unknown_partition(at, len(known))

    def committed(
        self,
        group: str,
        partitions: Collection[TopicPartition] | None = None,
        within_seconds: float = ANSWER_SECONDS,
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """All that the group committed, without `partitions`."""
        places = None if partitions is None else [client_partition(at) for at in partitions]
        request = ConsumerGroupTopicPartitions(group, places)
        found = self.ask(
            f"Reading the commits of group {group!r}",
            lambda client: client.list_consumer_group_offsets([request], require_stable=True)[
                group
            ],
            within_seconds,
        )
        return dict(_commit_of(group, place) for place in found.topic_partitions)

    def _wait(self, subject: str, future: Future[Answer], deadline: float) -> Answer:
        while True:
            try:
                answer = future.result(_SLICE_SECONDS)
            except NoAnswerYet:
                self._client.poll(0)
                self.check_reachable()
                if time.monotonic() > deadline:
                    raise OutcomeUnknown(f"{subject}: Kafka gave no answer in time.") from None
            except KafkaException as error:
                self._client.poll(0)
                self._connection.check_admission()
                raise translate(error.args[0], subject) from error
            else:
                self._connection.answered()
                return answer

    def _is_lost(self) -> bool:
        """An old complaint may be heard after the broker is back, so it is asked."""
        return self._connection.lost and not self._answers()

    def _answers(self) -> bool:
        try:
            self._client.list_topics(timeout=_LOOK_SECONDS)
        except KafkaException:
            self._client.poll(0)
            return False
        self._connection.answered()
        return True


def client_partition(at: TopicPartition, offset: Offset = OFFSET_INVALID) -> ClientPartition:
    return ClientPartition(at.topic, at.partition, offset)


def partition_of(place: ClientPartition) -> TopicPartition:
    return TopicPartition(place.topic, place.partition)


def unknown_partition(at: TopicPartition, partitions: int) -> UnknownPartition:
    return UnknownPartition(
        f"Topic {at.topic} has no partition {at.partition}; it has {partitions}, from 0 to "
        f"{partitions - 1}."
    )


def refused(error: KafkaException, connection: Connection) -> ForebayError:
    """A client that cannot even be made: its settings are wrong, or its token never came."""
    return translate(error.args[0], f"Connecting to Kafka at {connection.address}")


def _commit_of(group: str, place: ClientPartition) -> tuple[TopicPartition, CommittedOffset | None]:
    at = partition_of(place)
    if place.error is not None:
        raise translate(place.error, f"Reading the commit of group {group!r} for {at}")
    if place.offset < 0:
        return at, None
    return at, CommittedOffset(place.offset, place.metadata or "")
