from collections.abc import Collection, Mapping
from dataclasses import replace

from forebay.broker.port import (
    GroupDescription,
    GroupMember,
    GroupPosition,
    GroupSummary,
    TopicDescription,
    Watermarks,
)
from forebay.core.errors import (
    GroupActive,
    InvalidRequest,
    OffsetOutOfRange,
    TopicExists,
    UnknownGroup,
)
from forebay.core.records import CommittedOffset, Offset, TopicPartition
from forebay.core.topics import TopicSpec, check_partitions, check_spec
from forebay.testing.memory_groups import MemoryGroup
from forebay.testing.memory_log import MemoryLog, MemoryStore, MemoryTopic


class MemoryAdmin:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def create_topic(self, spec: TopicSpec, *, exists_ok: bool = False) -> None:
        with self._store.changed:
            check_spec(spec, self._store.topics)
            if spec.name not in self._store.topics:
                logs = [MemoryLog() for _ in range(spec.partitions)]
                self._store.topics[spec.name] = MemoryTopic(spec, logs)
                self._store.changed.notify_all()
            elif not exists_ok:
                raise TopicExists(f"Topic {spec.name} exists already; it was not altered.")

    def describe_topics(self, names: Collection[str] | None = None) -> list[TopicDescription]:
        with self._store.changed:
            wanted = self._store.topics if names is None else names
            return [_description(self._store.topic(name)) for name in sorted(wanted)]

    def extend_topic(self, name: str, partitions: int) -> None:
        with self._store.changed:
            topic = self._store.topic(name)
            check_partitions(name, partitions)
            if partitions <= len(topic.logs):
                raise InvalidRequest(
                    f"Topic {name} has {len(topic.logs)} partitions; it can only get more."
                )
            topic.logs += [MemoryLog() for _ in range(partitions - len(topic.logs))]
            topic.spec = replace(topic.spec, partitions=partitions)
            self._store.changed.notify_all()

    def delete_topic(self, name: str) -> None:
        with self._store.changed:
            self._store.topic(name)
            del self._store.topics[name]
            for group in self._store.groups.values():
                group.forget(name)
            self._store.changed.notify_all()

    def trim(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        with self._store.changed:
            logs = {partition: self._store.log(partition) for partition in before}
            for partition, log in logs.items():
                if before[partition] > log.end:
                    raise OffsetOutOfRange(partition, before[partition], log.low, log.end)
            for partition, log in logs.items():
                log.trim(before[partition])
            return {partition: log.low for partition, log in logs.items()}

    def watermarks(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]:
        with self._store.changed:
            return {partition: self._store.log(partition).watermarks for partition in partitions}

    def list_groups(self) -> list[GroupSummary]:
        with self._store.changed:
            groups = [self._store.group(name) for name in sorted(self._store.groups)]
            return [
                GroupSummary(group.name, bool(group.members), len(group.members))
                for group in groups
                if group.known
            ]

    def describe_group(self, name: str) -> GroupDescription:
        with self._store.changed:
            group = self._store.group(name)
            if not group.known:
                raise UnknownGroup(
                    f"There is no group {name}. `list_groups` names those there are."
                )
            members = tuple(
                GroupMember(member.id, member.client_id, "here", tuple(group.owned(member.id)))
                for member in group.members.values()
            )
            return GroupDescription(name, bool(members), members, self._positions(group))

    def reset_offsets(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        with self._store.changed:
            stored = self._store.group(group)
            if stored.members:
                raise GroupActive(
                    f"Group {group} has {len(stored.members)} members; nothing was reset. Stop "
                    f"them first."
                )
            for partition in offsets:
                self._store.log(partition)
            stored.committed.update({p: CommittedOffset(o) for p, o in offsets.items()})

    def _positions(self, group: MemoryGroup) -> tuple[GroupPosition, ...]:
        return tuple(
            GroupPosition(p, group.committed.get(p), self._store.log(p).watermarks)
            for p in sorted(group.committed.keys() | group.owners.keys())
        )


def _description(topic: MemoryTopic) -> TopicDescription:
    spec = topic.spec
    return TopicDescription(
        spec.name, topic.id, len(topic.logs), spec.retention_ms, spec.retention_bytes
    )
