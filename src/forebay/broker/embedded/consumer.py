import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

import apsw

from forebay.broker.embedded import topics
from forebay.broker.embedded.bells import hang_bell, rope_of_group, rope_of_topic
from forebay.broker.embedded.membership import Membership
from forebay.broker.embedded.parts import Parts
from forebay.broker.embedded.positions import committed_offsets, marks_of, offset_for_time
from forebay.broker.embedded.reading import Place, Reader
from forebay.broker.embedded.writer import Operation, Writer
from forebay.broker.ownership import OwnerThread
from forebay.broker.port import CommitResult, Rebalance, Watermarks
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import (
    Closed,
    CommitFailed,
    ForebayError,
    InvalidRequest,
    UnknownTopic,
)
from forebay.core.records import UNSET, CommittedOffset, Offset, Record, TopicPartition

_Offsets: TypeAlias = Mapping[TopicPartition, CommittedOffset]

# Even if every ring were lost, a waiting reader looks this often.
LOOK_SECONDS = 0.25


class EmbeddedConsumer:
    def __init__(self, parts: Parts, group: str | None, settings: ConsumerSettings) -> None:
        self._parts = parts
        self._settings = settings
        self._owner = OwnerThread("consumer")
        self._connection = parts.folder.connect()
        self._reader = Reader(self._connection)
        self._bell = hang_bell(parts.folder.bells, self._connection)
        self._member = (
            None if group is None else Membership(group, settings, parts, self._connection)
        )
        self._topics: tuple[str, ...] = ()
        self._missing: set[str] = set()
        self._listener: Rebalance | None = None
        self._commits: deque[tuple[_Offsets, Operation[CommitResult]]] = deque()
        self._is_polling = False
        self._is_closing = False
        self._is_closed = False

    # Assignment

    def subscribe(self, topics: Collection[str], listener: Rebalance) -> None:
        self._check()
        member = self._group_of("subscribe")
        self._topics, self._listener = tuple(topics), listener
        self._missing = set()
        if member.is_member:
            member.join(self._topics)

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        self._check()
        if self._topics:
            raise InvalidRequest(
                "This consumer is subscribed; its group assigns partitions. Nothing was changed. "
                "Use another consumer to read partitions by hand."
            )
        places = [self._place(partition, offset) for partition, offset in positions.items()]
        self._reader.remove(self._reader.partitions)
        self._reader.add(places)
        self._listen()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._reader.partitions

    # Reading

    def poll(
        self, timeout_seconds: float, max_records: int = 500, max_bytes: int = 8 * 2**20
    ) -> list[Record]:
        self._check()
        self._is_polling = True
        if self._member:
            self._member.poll_begins()
        try:
            return self._poll(time.monotonic() + timeout_seconds, max_records, max_bytes)
        finally:
            if self._member:
                self._member.poll_ends()
            self._is_polling = False
            if self._is_closing:
                self._finish()

    def _poll(self, deadline: float, max_records: int, max_bytes: int) -> list[Record]:
        while not self._is_closing:
            self._keep_membership()
            records = self._reader.fetch(max_records, max_bytes)
            remaining = deadline - time.monotonic()
            if records or remaining <= 0:
                return records
            self._parts.probe.hit("consumer.before_waiting")
            self._bell.wait(min(remaining, LOOK_SECONDS))
        return []

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._check()
        for partition in partitions:
            self._assigned(partition).is_paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._check()
        for partition in partitions:
            self._assigned(partition).is_paused = False

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        self._check()
        self._assigned(partition)
        self._reader.seek(partition, offset)

    def position(self, partition: TopicPartition) -> Offset:
        return self._assigned(partition).position

    def at_end(self, partition: TopicPartition) -> bool:
        place = self._assigned(partition)
        return place.end != UNSET and place.position >= place.end

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        self._check()
        return marks_of(self._connection, partition)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        self._check()
        return offset_for_time(self._connection, partition, timestamp_ms)

    # Commits

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        self._check()
        member = self._group_of("read commits")
        return committed_offsets(self._connection, member.group, partitions)

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._check()
        member = self._group_of("commit")
        operation = member.start_commit(offsets)
        result = _outcome(self._parts.writer, offsets, operation)
        if result.failures:
            raise CommitFailed(result.failures)

    def start_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._check()
        member = self._group_of("commit")
        self._commits.append((dict(offsets), member.start_commit(offsets)))

    def finished_commits(self) -> list[CommitResult]:
        self._check()
        finished = []
        while self._commits and self._commits[0][1].future.done():
            offsets, operation = self._commits.popleft()
            finished.append(_outcome(self._parts.writer, offsets, operation))
        return finished

    # End

    def close(self) -> None:
        if self._is_polling:
            self._is_closing = True
            self._bell.ring()
        elif not (self._is_closing or self._is_closed):
            self._owner.check()
            self._finish()

    def _finish(self) -> None:
        self._is_closing = True
        try:
            self._leave()
        finally:
            self._is_closed = True
            self._reader.remove(self._reader.partitions)
            self._bell.close()
            self._connection.close()
            self._parts.forget(self)

    def _leave(self) -> None:
        member = self._member
        if member is None or not member.is_member:
            return
        try:
            if member.owned and self._listener and not member.was_expelled():
                self._listener.revoked(list(member.owned))
        finally:
            member.leave()

    # Group life, inside poll

    def _keep_membership(self) -> None:
        member, listener = self._member, self._listener
        if member is None or listener is None:
            return
        if not member.is_member:
            member.join(self._topics)
            self._listen()
        if member.has_news():
            self._follow(member, listener)

    def _follow(self, member: Membership, listener: Rebalance) -> None:
        lost, leaving, claimable = member.look()
        if lost or member.was_expelled():
            self._lose(member, listener, lost)
        if leaving:
            self._revoke(leaving)
        if claimable and member.is_member:
            self._take_over(member, listener)
        self._check_topics()

    def _lose(self, member: Membership, listener: Rebalance, lost: list[TopicPartition]) -> None:
        expelled = member.was_expelled()
        gone = list(member.owned) if expelled else lost
        member.drop(gone)
        if expelled:
            member.forget_membership()
        self._reader.remove(gone)
        self._listen()
        if gone:
            self._parts.emit("consumer.lost", consumer_group=member.group, partitions=_names(gone))
            listener.lost(gone)

    def _revoke(self, leaving: list[TopicPartition]) -> None:
        member, listener = self._group_of("revoke"), self._listener
        try:
            if listener:
                listener.revoked(leaving)
        finally:
            self._reader.remove(leaving)
            member.release(leaving)
            self._listen()
            self._parts.emit(
                "consumer.revoked", consumer_group=member.group, partitions=_names(leaving)
            )

    def _take_over(self, member: Membership, listener: Rebalance) -> None:
        claimed = member.claim()
        self._reader.add(
            Place(
                own.partition,
                own.partition_id,
                own.topic_id,
                UNSET if own.committed is None else own.committed.offset,
            )
            for own in claimed
        )
        self._listen()
        if claimed:
            names = [own.partition for own in claimed]
            self._parts.emit(
                "consumer.assigned", consumer_group=member.group, partitions=_names(names)
            )
            listener.assigned({own.partition: own.committed for own in claimed})

    def _check_topics(self) -> None:
        """A subscribed topic that does not exist is told once; it joins in when it is created."""
        for name in self._topics:
            if _exists(self._connection, name):
                self._missing.discard(name)
            elif name not in self._missing:
                self._missing.add(name)
                raise UnknownTopic(
                    f"There is no topic {name}. The group reads it as soon as it exists. Create "
                    f"it: forebay topics create {name}"
                )

    # Small things

    def _place(self, partition: TopicPartition, offset: Offset) -> Place:
        topic = topics.load(self._connection, partition.topic)
        return Place(partition, topic.partition_id(partition.partition), topic.id, offset)

    def _assigned(self, partition: TopicPartition) -> Place:
        if not self._reader.has(partition):
            raise InvalidRequest(
                f"{partition} is not assigned to this consumer. Nothing was done. It may have "
                f"moved to another member."
            )
        return self._reader.place(partition)

    def _group_of(self, verb: str) -> Membership:
        if self._member is None:
            raise InvalidRequest(
                f"A consumer without a group cannot {verb}. Nothing was done. Open it with a group."
            )
        return self._member

    def _listen(self) -> None:
        ropes = {rope_of_topic(id) for id in self._reader.topic_ids}
        if self._member and self._member.group_id is not None:
            ropes.add(rope_of_group(self._member.group_id))
        self._bell.listen(ropes)

    def _check(self) -> None:
        if self._is_closed:
            raise Closed("This consumer is closed. Open another one.")
        self._parts.fork.check()
        self._owner.check()


def _outcome(writer: Writer, offsets: _Offsets, operation: Operation[CommitResult]) -> CommitResult:
    try:
        return writer.wait(operation)
    except ForebayError as error:
        return CommitResult(offsets, dict.fromkeys(offsets, error))


def _names(partitions: Iterable[TopicPartition]) -> list[str]:
    return sorted(str(partition) for partition in partitions)


def _exists(connection: apsw.Connection, topic: str) -> bool:
    row = connection.execute("SELECT 1 FROM topic WHERE name = ?", (topic,)).fetchone()
    return row is not None
