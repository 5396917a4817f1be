import threading
from collections.abc import Collection, Mapping

import apsw

from forebay.broker.embedded import groups, retention, topics
from forebay.broker.embedded.guard import ForkGuard
from forebay.broker.embedded.positions import group_commits, marks_of
from forebay.broker.embedded.writer import Writer
from forebay.broker.port import (
    GroupDescription,
    GroupMember,
    GroupPosition,
    GroupSummary,
    TopicDescription,
    Watermarks,
)
from forebay.core.errors import UnknownGroup
from forebay.core.records import CommittedOffset, Offset, TopicPartition
from forebay.core.topics import TopicSpec


class EmbeddedAdmin:
    def __init__(
        self, connection: apsw.Connection, writer: Writer, fork: ForkGuard, identity: str
    ) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._writer = writer
        self._fork = fork
        self._identity = identity

    def create_topic(self, spec: TopicSpec, *, exists_ok: bool = False) -> None:
        self._fork.check()
        self._writer.run(lambda transaction: topics.create(transaction, spec, exists_ok=exists_ok))

    def describe_topics(self, names: Collection[str] | None = None) -> list[TopicDescription]:
        self._fork.check()
        with self._lock:
            return topics.describe(self._connection, self._identity, names)

    def extend_topic(self, name: str, partitions: int) -> None:
        self._fork.check()
        self._writer.run(lambda transaction: topics.extend(transaction, name, partitions))

    def delete_topic(self, name: str) -> None:
        self._fork.check()
        self._writer.run(lambda transaction: topics.delete(transaction, name))

    def trim(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        self._fork.check()
        return self._writer.run(
            lambda transaction: retention.trim(
                transaction, {p: topics.partition_id(transaction, p) for p in before}, before
            )
        )

    def watermarks(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]:
        self._fork.check()
        with self._lock:
            return {partition: marks_of(self._connection, partition) for partition in partitions}

    def list_groups(self) -> list[GroupSummary]:
        self._fork.check()
        with self._lock:
            rows = self._connection.execute(
                "SELECT name, "
                "(SELECT count(*) FROM member WHERE member.consumer_group = g.id) AS size "
                "FROM consumer_group AS g WHERE size > 0 "
                "OR EXISTS (SELECT 1 FROM committed AS c WHERE c.consumer_group = g.id) "
                "ORDER BY name"
            )
            return [GroupSummary(name, members > 0, members) for name, members in rows]

    def describe_group(self, name: str) -> GroupDescription:
        self._fork.check()
        if name not in {group.name for group in self.list_groups()}:
            raise UnknownGroup(f"There is no group {name}. See what there is: forebay groups list")
        with self._lock, self._connection:
            members = self._members(name)
            commits = group_commits(self._connection, name)
            partitions = commits.keys() | {p for member in members for p in member.partitions}
            positions = tuple(
                GroupPosition(p, commits.get(p), marks_of(self._connection, p))
                for p in sorted(partitions)
            )
        return GroupDescription(name, bool(members), members, positions)

    def reset_offsets(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        self._fork.check()
        self._writer.run(
            lambda transaction: groups.set_offsets(
                transaction,
                group,
                {
                    topics.partition_id(transaction, p): CommittedOffset(offset)
                    for p, offset in offsets.items()
                },
            )
        )

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _members(self, group: str) -> tuple[GroupMember, ...]:
        owned: dict[str, list[TopicPartition]] = {}
        for owner, topic, number in self._connection.execute(
            "SELECT owner, topic.name, partition.number FROM ownership "
            "JOIN partition ON partition.id = ownership.partition "
            "JOIN topic ON topic.id = partition.topic "
            "JOIN consumer_group ON consumer_group.id = ownership.consumer_group "
            "WHERE consumer_group.name = ? ORDER BY 2, 3",
            (group,),
        ):
            owned.setdefault(owner, []).append(TopicPartition(topic, number))
        return tuple(
            GroupMember(id, client_id, host, tuple(owned.get(id, ())))
            for id, client_id, host in self._connection.execute(
                "SELECT member.id, client_id, host FROM member "
                "JOIN consumer_group ON consumer_group.id = member.consumer_group "
                "WHERE consumer_group.name = ? ORDER BY 1",
                (group,),
            )
        )
