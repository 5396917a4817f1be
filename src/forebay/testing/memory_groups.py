"""Groups of a `MemoryBroker`: who is in, who owns what, who shall own what, what is committed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf

from forebay.broker.balance import balance
from forebay.core.errors import Fenced, ForebayError
from forebay.core.records import CommittedOffset, TopicPartition


@dataclass(slots=True)
class MemoryMember:
    """`id` is new at every join, so what an expelled member still says is recognised as old."""

    id: str
    client_id: str
    topics: frozenset[str] = frozenset()
    poll_deadline: float = inf


class MemoryGroup:
    """An owner releases in its own poll; the new owner claims only what nobody owns."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.committed: dict[TopicPartition, CommittedOffset] = {}
        self.members: dict[str, MemoryMember] = {}
        self.owners: dict[TopicPartition, str] = {}
        self._targets: dict[TopicPartition, str] = {}
        self._planned_for: object = None
        self._joined = 0

    @property
    def known(self) -> bool:
        """Asking for a group does not found it; joining, committing and resetting do."""
        return self._joined > 0 or bool(self.committed)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset[str]().union(*(member.topics for member in self.members.values()))

    def join(self, client_id: str) -> MemoryMember:
        self._joined += 1
        member = MemoryMember(f"{client_id}-{self._joined}", client_id)
        self.members[member.id] = member
        return member

    def leave(self, member_id: str) -> None:
        self.members.pop(member_id, None)
        self.owners = {p: owner for p, owner in self.owners.items() if owner != member_id}

    def expire(self, now: float) -> None:
        for member in list(self.members.values()):
            if now > member.poll_deadline:
                self.leave(member.id)

    def plan(self, partitions: Collection[TopicPartition]) -> None:
        """Balance anew when members, their topics or the partitions are not the same any more."""
        subscriptions = {member.id: member.topics for member in self.members.values()}
        situation = (subscriptions, list(partitions))
        if situation != self._planned_for:
            self._targets = balance(partitions, subscriptions, self.owners)
            self._planned_for = situation

    def owned(self, member_id: str) -> list[TopicPartition]:
        return sorted(p for p, owner in self.owners.items() if owner == member_id)

    def keeps(self, member_id: str) -> set[TopicPartition]:
        return {p for p in self.owned(member_id) if self._targets.get(p) == member_id}

    def release(self, member_id: str, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            if self.owners.get(partition) == member_id:
                del self.owners[partition]

    def claim(self, member_id: str) -> dict[TopicPartition, CommittedOffset | None]:
        free = sorted(
            partition
            for partition, target in self._targets.items()
            if target == member_id and partition not in self.owners
        )
        self.owners.update(dict.fromkeys(free, member_id))
        return {partition: self.committed.get(partition) for partition in free}

    def commit(
        self, member_id: str | None, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, ForebayError]:
        """Without a member it is a reader by hand, which may commit while the group is empty."""
        failures: dict[TopicPartition, ForebayError] = {}
        for partition, committed in offsets.items():
            if self.owners.get(partition) == member_id and (member_id or not self.members):
                self.committed[partition] = committed
            else:
                failures[partition] = Fenced(
                    f"Group {self.name} has given {partition} away; this commit had no effect. "
                    f"Drop the records of that partition: its new owner reads them again."
                )
        return failures

    def forget(self, topic: str) -> None:
        self.committed = {p: c for p, c in self.committed.items() if p.topic != topic}
        self.owners = {p: owner for p, owner in self.owners.items() if p.topic != topic}
