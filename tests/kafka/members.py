"""A consumer with a listener that remembers what it was told."""

from collections.abc import Callable, Collection, Mapping

from contracts.broker.stories import PATIENCE_SECONDS, QUICK
from forebay.broker.port import Broker
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import ForebayError
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.testing.waiting import eventually


class Member:
    def __init__(
        self,
        broker: Broker,
        group: str,
        settings: ConsumerSettings = QUICK,
        start: Callable[[TopicPartition], int | None] = lambda _: 0,
    ) -> None:
        self.consumer = broker.consumer(group, settings)
        self.start = start
        self.assigned_calls: list[dict[TopicPartition, CommittedOffset | None]] = []
        self.revoked_calls: list[Collection[TopicPartition]] = []
        self.lost_calls: list[Collection[TopicPartition]] = []
        self.records: list[Record] = []
        self.errors: list[ForebayError] = []

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self.assigned_calls.append(dict(committed))
        for at, found in committed.items():
            start = self.start(at)
            if found is None and start is not None:
                self.consumer.seek(at, start)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.revoked_calls.append(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self.lost_calls.append(partitions)

    def join(self, *topics: str) -> "Member":
        self.consumer.subscribe(topics, self)
        return self

    def poll(self) -> None:
        try:
            self.records += self.consumer.poll(0.05)
        except ForebayError as error:
            self.errors.append(error)

    def until(self, done: Callable[[], object], *others: "Member") -> None:
        def look() -> bool:
            for member in (self, *others):
                member.poll()
            return bool(done())

        eventually(look, within_seconds=PATIENCE_SECONDS)

    def owns(self, count: int) -> bool:
        return len(self.consumer.assignment) == count
