import time
from collections.abc import Collection, Iterable, Mapping

from forebay.broker.ownership import OwnerThread
from forebay.broker.port import CommitResult, Rebalance, Watermarks
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import (
    Closed,
    CommitFailed,
    ForebayError,
    InvalidRequest,
    NoCommittedOffset,
    UnknownTopic,
)
from forebay.core.records import CommittedOffset, Offset, Record, TopicPartition
from forebay.testing.memory_assignment import MemoryAssignment, Reader
from forebay.testing.memory_groups import MemoryGroup, MemoryMember
from forebay.testing.memory_log import MemoryStore

_LOOK_AGAIN_SECONDS = 0.02  # how soon a waiting poll sees that a signal handler closed it


class MemoryConsumer:
    def __init__(self, store: MemoryStore, group: str | None, settings: ConsumerSettings) -> None:
        self._store = store
        self._group_name = group
        self._settings = settings
        self._owner = OwnerThread("consumer")
        self._listener: Rebalance | None = None
        self._topics: frozenset[str] = frozenset()
        self._missing: frozenset[str] = frozenset()
        self._member: MemoryMember | None = None
        self._assigned = MemoryAssignment(store)
        self._finished: list[CommitResult] = []
        self._busy = False
        self._closing = False
        self._closed = False

    def subscribe(self, topics: Collection[str], listener: Rebalance) -> None:
        self._enter()
        self._group()
        self._topics, self._listener = frozenset(topics), listener

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        self._enter()
        with self._store.changed:
            for partition in positions:
                self._store.log(partition)
        self._assigned.drop(self._assigned.partitions)
        self._assigned.add(positions)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._assigned.partitions

    def poll(
        self, timeout_seconds: float, max_records: int = 500, max_bytes: int = 8 * 2**20
    ) -> list[Record]:
        self._enter()
        if self._busy:
            raise InvalidRequest("A rebalance call must not poll its own consumer.")
        self._busy = True
        try:
            deadline = time.monotonic() + timeout_seconds
            return self._wait_for_records(deadline, max_records, max_bytes)
        finally:
            self._busy = False
            if self._closing:
                self.shut()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._reader(partition).paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._reader(partition).paused = False

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        self._reader(partition).seek(offset)

    def position(self, partition: TopicPartition) -> Offset:
        offset = self._reader(partition).next_offset
        if offset is None:
            raise NoCommittedOffset(f"The reader of {partition} has no position yet; seek it.")
        return offset

    def at_end(self, partition: TopicPartition) -> bool:
        return self._reader(partition).at_end

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        self._enter()
        with self._store.changed:
            return self._store.log(partition).watermarks

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        self._enter()
        with self._store.changed:
            return self._store.log(partition).offset_for_time(timestamp_ms)

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        self._enter()
        with self._store.changed:
            return {partition: self._group().committed.get(partition) for partition in partitions}

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        if failures := self._commit(offsets):
            raise CommitFailed(failures)

    def start_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._finished.append(CommitResult(dict(offsets), self._commit(offsets)))

    def finished_commits(self) -> list[CommitResult]:
        self._enter()
        finished, self._finished = self._finished, []
        return finished

    def close(self) -> None:
        if not self._closed:
            self._owner.check()
            self.shut()

    def shut(self) -> None:
        """Leave now, or when the poll or rebalance call in progress returns."""
        if self._busy:
            self._closing = True
        elif not self._closed:
            self._leave()

    def _enter(self) -> None:
        if self._closed:
            raise Closed("This consumer is closed. Ask the broker for a new one.")
        self._owner.check()

    def _group(self) -> MemoryGroup:
        if self._group_name is None:
            raise InvalidRequest("A consumer without a group can only assign; name a group.")
        with self._store.changed:
            return self._store.group(self._group_name)

    def _reader(self, partition: TopicPartition) -> Reader:
        self._enter()
        return self._assigned.reader(partition)

    def _commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ForebayError]:
        self._enter()
        with self._store.changed:
            return self._group().commit(self._member.id if self._member else None, offsets)

    def _wait_for_records(self, deadline: float, max_records: int, max_bytes: int) -> list[Record]:
        while not self._closing:
            if self._listener:
                self._take_part(self._listener)
            with self._store.changed:
                self._raise_what_is_missing()
                self._assigned.raise_what_stops()
                records = self._assigned.read(max_records, max_bytes)
                remaining = deadline - time.monotonic()
                if records or remaining <= 0:
                    return records
                self._store.changed.wait(min(remaining, _LOOK_AGAIN_SECONDS))
        return []

    def _take_part(self, listener: Rebalance) -> None:
        """A member's duties, in order: notice an expulsion, join, hand over, take over."""
        group = self._group()
        if self._member and self._member.id not in group.members:
            self._member = None
            self._lose(listener)
        member = self._keep_joined(group)
        self._hand_over(group, member, listener)
        self._take_over(group, member, listener)

    def _lose(self, listener: Rebalance) -> None:
        lost = sorted(self.assignment)
        self._assigned.drop(lost)
        if lost:
            listener.lost(lost)

    def _keep_joined(self, group: MemoryGroup) -> MemoryMember:
        with self._store.changed:
            deadline = self._store.clock.monotonic() + self._settings.poll_interval_max_seconds
            if self._member is None:
                self._member = group.join(self._settings.client_id)
            self._member.topics, self._member.poll_deadline = self._topics, deadline
            group.plan(self._store.partitions(group.topics))
            return self._member

    def _hand_over(self, group: MemoryGroup, member: MemoryMember, listener: Rebalance) -> None:
        leaving = sorted(self.assignment - group.keeps(member.id))
        if not leaving:
            return
        try:
            listener.revoked(leaving)
        finally:
            self._assigned.drop(leaving)
            with self._store.changed:
                group.release(member.id, leaving)
                self._store.changed.notify_all()

    def _take_over(self, group: MemoryGroup, member: MemoryMember, listener: Rebalance) -> None:
        with self._store.changed:
            claimed = group.claim(member.id)
        self._assigned.add({p: known.offset if known else None for p, known in claimed.items()})
        if claimed:
            listener.assigned(claimed)

    def _raise_what_is_missing(self) -> None:
        missing = self._topics - self._store.topics.keys()
        news, self._missing = missing - self._missing, missing
        if news:
            raise UnknownTopic(
                f"There is no topic {', '.join(sorted(news))}. Create it; this member waits."
            )

    def _leave(self) -> None:
        self._busy = True
        try:
            if self._listener and self.assignment:
                self._listener.revoked(sorted(self.assignment))
        finally:
            self._closed = True
            self._assigned.drop(self.assignment)
            with self._store.changed:
                if self._member:
                    self._group().leave(self._member.id)
                self._store.changed.notify_all()
