"""What the cases tell: producing, members that read, polling them in turn."""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from forebay.broker.port import Broker, Consumer, Report, Watermarks
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import OffsetOutOfRange, Unavailable
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.waiting import eventually

QUICK = ConsumerSettings(
    session_timeout_seconds=6, heartbeat_seconds=0.1, metadata_refresh_seconds=0.5
)
PATIENCE_SECONDS = 20.0


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def new_topic(broker: Broker, partitions: int = 1) -> str:
    name = unique("topic")
    broker.admin().create_topic(TopicSpec(name, partitions))
    return name


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]


def numbered(topic: str, count: int, partition: int = 0, first: int = 0) -> list[Record]:
    numbers = range(first, first + count)
    return [Record(b"%d" % number, topic=topic, partition=partition) for number in numbers]


def produce(broker: Broker, records: Iterable[Record]) -> list[Report]:
    """All of them acknowledged; the reports in the order of the records."""
    producer = broker.producer()
    for number, record in enumerate(records):
        producer.send(record, number)
    reports = sorted(producer.close(PATIENCE_SECONDS), key=lambda report: report.token)
    assert [report.error for report in reports if report.error] == []
    return reports


def read(consumer: Consumer, count: int) -> list[Record]:
    """So many records, in the order in which they came."""
    records: list[Record] = []

    def enough() -> bool:
        records.extend(consumer.poll(0.05))
        return len(records) >= count

    eventually(enough, within_seconds=PATIENCE_SECONDS)
    return records


def read_from_start(broker: Broker, partitions: Collection[TopicPartition]) -> list[Record]:
    """All that is there now."""
    consumer = broker.consumer(None)
    watermarks = eventually(
        lambda: _watermarks(broker, partitions), within_seconds=PATIENCE_SECONDS
    )
    consumer.assign({partition: low for partition, (low, _) in watermarks.items()})
    records: list[Record] = []

    def done() -> bool:
        records.extend(consumer.poll(0.05, max_records=10_000))
        return all(consumer.position(p) >= end for p, (_, end) in watermarks.items())

    eventually(done, within_seconds=PATIENCE_SECONDS)
    consumer.close()
    return records


def _watermarks(
    broker: Broker, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Watermarks] | None:
    """Not yet, where a broker that was away has not found its leaders again."""
    try:
        return broker.admin().watermarks(partitions)
    except Unavailable:
        return None


def values(records: Iterable[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def raised_by_polling(consumer):
    """The first OffsetOutOfRange, and whether any followed it."""

    def first():
        try:
            consumer.poll(0.05)
        except OffsetOutOfRange as error:
            return error
        return None

    error = eventually(first, within_seconds=PATIENCE_SECONDS)
    return error, [again for _ in range(5) if (again := first())]


class Member:
    """A consumer of a group that remembers all it was told and given."""

    def __init__(
        self,
        broker: Broker,
        group: str,
        topics: Collection[str],
        *,
        start: str | None = "earliest",
        settings: ConsumerSettings = QUICK,
    ) -> None:
        self.consumer = broker.consumer(group, settings)
        self.records: list[Record] = []
        self.told: list[tuple[str, frozenset[TopicPartition]]] = []
        self.started_at: dict[TopicPartition, CommittedOffset | None] = {}
        self.forgiving = False  # of a broker that is away for a while
        self.when_revoked: Callable[[Collection[TopicPartition]], None] = lambda _: None
        self._start = start
        self.consumer.subscribe(topics, self)

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self.told.append(("assigned", frozenset(committed)))
        self.started_at.update(committed)
        for partition in (p for p, known in committed.items() if known is None and self._start):
            low, end = self.consumer.watermarks(partition)
            self.consumer.seek(partition, low if self._start == "earliest" else end)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.told.append(("revoked", frozenset(partitions)))
        self.when_revoked(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self.told.append(("lost", frozenset(partitions)))

    def all_told(self, what: str) -> frozenset[TopicPartition]:
        return frozenset[TopicPartition]().union(*(ps for kind, ps in self.told if kind == what))

    @property
    def owns(self) -> frozenset[TopicPartition]:
        return self.consumer.assignment

    def poll(self, timeout_seconds: float = 0.02) -> list[Record]:
        try:
            records = self.consumer.poll(timeout_seconds)
        except Unavailable:
            if not self.forgiving:
                raise
            return []
        self.records += records
        return records

    def commit_all(self) -> None:
        """Everything that was delivered of what it owns."""
        last = {record.at: record.offset + 1 for record in self.records if record.at in self.owns}
        self.consumer.commit({partition: CommittedOffset(at) for partition, at in last.items()})


def take_turns(*members: Member, until: Callable[[], object]) -> None:
    """Poll each in turn, as one thread that uses several consumers does."""

    def turn() -> object:
        for member in members:
            member.poll()
        return until()

    eventually(turn, within_seconds=PATIENCE_SECONDS, every_seconds=0)


def shares(*members: Member) -> list[int]:
    return sorted(len(member.owns) for member in members)


def own_all(members: Sequence[Member], partitions: Collection[TopicPartition]) -> bool:
    """Disjoint and complete."""
    owned = [partition for member in members for partition in member.owns]
    return sorted(owned) == sorted(partitions)
