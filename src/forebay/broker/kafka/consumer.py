import time
from collections.abc import Collection, Iterable, Mapping

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from forebay.broker.kafka.cluster import Cluster
from forebay.broker.kafka.commits import Commits
from forebay.broker.kafka.configuration import for_consumer
from forebay.broker.kafka.incarnations import Incarnations
from forebay.broker.kafka.membership import Membership
from forebay.broker.kafka.ownership import Ownership
from forebay.broker.kafka.questions import client_partition, refused
from forebay.broker.kafka.reader import Reader
from forebay.broker.kafka.vanished import VanishedTopics
from forebay.broker.port import CommitResult, Rebalance, Watermarks
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import InvalidRequest, NoCommittedOffset
from forebay.core.records import CommittedOffset, Offset, Record, TopicPartition
from forebay.core.topics import check_name

# Short, so that a close from a signal handler ends a poll.
_SLICE_SECONDS = 0.1
# What is shorter the client does not wait at all, and this loop would spin.
_SHORTEST_SECONDS = 0.001


class KafkaConsumer:
    def __init__(self, cluster: Cluster, group: str | None, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._group = group
        self._ownership = Ownership("consumer")
        self._commits = Commits(self._may_commit)
        self._client = self._connect(settings)
        self._reader = Reader(cluster, self._client)
        self._readings = self._reader.readings
        self._membership = Membership(cluster, group or "", self._client, self._reader)
        self._incarnations = Incarnations(cluster.questions, settings.metadata_refresh_seconds)
        self._vanished = VanishedTopics(cluster.questions, settings.metadata_refresh_seconds)

    def subscribe(self, topics: Collection[str], listener: Rebalance) -> None:
        self._ownership.claim()
        self._named_group("subscribe")
        if not topics:
            raise InvalidRequest("A subscription names no topic. Name at least one.")
        for name in topics:
            check_name(name)
        if self._readings and not self._membership.joined:
            raise InvalidRequest(
                "This consumer reads partitions by hand. Use another consumer to join a group."
            )
        self._membership.join(topics, listener)

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        with self._ownership.busy():
            if self._membership.joined:
                raise InvalidRequest(
                    "This consumer has joined its group, which assigns it partitions. Use another "
                    "consumer to read by hand."
                )
            self._cluster.questions.check_partitions(positions)
            self._reader.let_go(list(self._readings))
            for at, offset in positions.items():
                self._readings.add(at)
                self._readings.move(at, offset)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._readings)

    def poll(
        self, timeout_seconds: float, max_records: int = 500, max_bytes: int = 8 * 2**20
    ) -> list[Record]:
        with self._ownership.busy():
            records = self._poll(time.monotonic() + timeout_seconds, max_records, max_bytes)
        if self._ownership.closing:
            self.close()
            return []
        return records

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        with self._ownership.busy():
            self._client.pause(self._mark(partitions, paused=True))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        with self._ownership.busy():
            self._client.resume(self._mark(partitions, paused=False))

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        self._ownership.claim()
        self._readings.move(partition, offset)

    def position(self, partition: TopicPartition) -> Offset:
        with self._ownership.busy():
            position = self._reader.position(partition)
        if position is None:
            raise NoCommittedOffset(f"{partition} has no position yet: nobody said where to start.")
        return position

    def at_end(self, partition: TopicPartition) -> bool:
        with self._ownership.busy():
            return self._reader.at_end(partition)

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        with self._ownership.busy():
            return self._cluster.questions.watermarks([partition])[partition]

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        with self._ownership.busy():
            questions = self._cluster.questions
            earliest = max(0, timestamp_ms)  # a negative one means something else to Kafka
            found = questions.offsets([partition], earliest)[partition]
            return found if found >= 0 else questions.end_offsets([partition])[partition]

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        with self._ownership.busy():
            group = self._named_group("look at commits")
            return self._cluster.questions.committed(group, partitions) if partitions else {}

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Without a coordinator it waits for one, at most as long as the session timeout."""
        with self._ownership.busy():
            self._named_group("commit")
            self._commits.commit(self._client, offsets)

    def start_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        with self._ownership.busy():
            self._named_group("commit")
            self._commits.start(self._client, offsets)

    def finished_commits(self) -> list[CommitResult]:
        self._ownership.claim()
        return self._commits.finished()

    def close(self) -> None:
        ownership = self._ownership
        if ownership.closed or not ownership.may_close_now():
            return
        with ownership.busy():
            self._client.close()
        ownership.closed = True
        self._readings.clear()
        self._reader.raise_for_listener()

    def _connect(self, settings: ConsumerSettings) -> Client:
        connection = self._cluster.connection
        configuration = for_consumer(self._cluster.settings, self._group, settings)
        callbacks = {"error_cb": connection.on_error, "on_commit": self._commits.on_commit}
        try:
            return Client({**configuration, **callbacks})
        except KafkaException as error:
            raise refused(error, connection) from error

    def _poll(self, deadline: float, records_max: int, bytes_max: int) -> list[Record]:
        if self._ownership.closing:
            return []
        self._reader.raise_for_listener()
        self._leave_what_was_replaced()
        self._reader.raise_complaint()
        while not self._ownership.closing:
            self._membership.start_what_waits()
            remaining = max(0.0, deadline - time.monotonic())
            records = self._reader.take(_wait_of(remaining), records_max, bytes_max)
            if self._reader.raised:
                self._readings.put_back(records)
            self._reader.raise_for_listener()
            if records:
                self._cluster.connection.answered()
                return records
            self._reader.raise_complaint()
            if time.monotonic() >= deadline:
                self._look_around()
                break
        return []

    def _mark(self, partitions: Iterable[TopicPartition], *, paused: bool) -> list[ClientPartition]:
        """All are looked up first; what the client does not read yet is paused when it starts."""
        readings = {at: self._readings[at] for at in partitions}
        for reading in readings.values():
            reading.paused = paused
        return [client_partition(at) for at, reading in readings.items() if reading.started]

    def _look_around(self) -> None:
        """Nothing came: is that because there is nothing, or because something is wrong?"""
        self._cluster.questions.check_reachable()
        if not self._membership.joined:
            self._vanished.check(self._readings)

    def _leave_what_was_replaced(self) -> None:
        """A topic made again is told like an offset that the log does not hold."""
        replaced = self._incarnations.replaced({at.topic for at in self._readings})
        for at in [at for at in self._readings if at.topic in replaced]:
            self._readings.fell_outside(at, self._reader.position(at) or 0)

    def _may_commit(self, at: TopicPartition) -> bool:
        return not self._membership.joined or at in self._readings

    def _named_group(self, wish: str) -> str:
        if self._group is None:
            raise InvalidRequest(
                f"A consumer without a group cannot {wish}. Name a group when you make it."
            )
        return self._group


def _wait_of(remaining: float) -> float:
    return max(_SHORTEST_SECONDS, min(_SLICE_SECONDS, remaining)) if remaining else 0.0
