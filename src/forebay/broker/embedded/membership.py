"""One member's side of a group: it joins, lets go, claims, and notices that it was expelled."""

import os
import platform
import time
from collections.abc import Collection, Mapping
from uuid import uuid4

import apsw

from forebay.broker.embedded import groups
from forebay.broker.embedded.groups import Claimed
from forebay.broker.embedded.keeper import Pulse
from forebay.broker.embedded.liveness import SignOfLife
from forebay.broker.embedded.parts import Parts
from forebay.broker.embedded.transaction import Transaction
from forebay.broker.embedded.writer import Operation
from forebay.broker.port import CommitResult
from forebay.broker.settings import ConsumerSettings
from forebay.core.records import CommittedOffset, TopicPartition


class Membership:
    """Changes come from `look`; what they mean to the reader is the consumer's business."""

    def __init__(
        self, group: str, settings: ConsumerSettings, parts: Parts, connection: apsw.Connection
    ) -> None:
        self.group = group
        self._settings = settings
        self._members = parts.folder.members
        self._writer = parts.writer
        self._keeper = parts.keeper
        self._connection = connection
        self._pulse: Pulse | None = None
        self._seen_generation: int | None = None
        self.owned: dict[TopicPartition, Claimed] = {}

    @property
    def group_id(self) -> int | None:
        return None if self._pulse is None else self._pulse.group_id

    @property
    def is_member(self) -> bool:
        return self._pulse is not None

    def join(self, topics: Collection[str]) -> None:
        """Become a member, or change the topics of one."""
        member_id = self._pulse.member_id if self._pulse else f"{os.getpid()}-{uuid4().hex[:12]}"
        member = groups.Member(
            member_id,
            self._settings.client_id,
            platform.node(),
            self._settings.session_timeout_seconds,
            tuple(sorted(topics)),
        )
        group_id = self._writer.run(lambda transaction: groups.ensure(transaction, self.group))
        if self._pulse is None:
            self._pulse = self._start_pulse(member_id, group_id)
        self._writer.run(lambda transaction: groups.join(transaction, group_id, member))
        self._seen_generation = None

    def poll_begins(self) -> None:
        if self._pulse:
            self._pulse.poll_begins()

    def poll_ends(self) -> None:
        if self._pulse:
            self._pulse.poll_ends()

    def has_news(self) -> bool:
        """One small read; every poll asks."""
        return self._pulse is not None and self._generation() != self._seen_generation

    def look(self) -> tuple[list[TopicPartition], list[TopicPartition], bool]:
        """What is lost, what is to be given back, and whether something waits to be claimed."""
        assert self._pulse is not None  # noqa: S101 - has_news said so
        generation = self._generation()
        member_id = self._pulse.member_id
        rows = list(
            self._connection.execute(
                "SELECT partition, owner, claim, target FROM ownership WHERE consumer_group = ? "
                "AND (owner = ? OR target = ?)",
                (self._pulse.group_id, member_id, member_id),
            )
        )
        held = {(id, claim): target for id, owner, claim, target in rows if owner == member_id}
        lost = [p for p, own in self.owned.items() if (own.partition_id, own.claim) not in held]
        leaving = [
            partition
            for partition, own in self.owned.items()
            if held.get((own.partition_id, own.claim), member_id) != member_id
        ]
        claimable = any(owner is None for _, owner, _, _ in rows)
        self._seen_generation = generation
        return lost, leaving, claimable

    def was_expelled(self) -> bool:
        assert self._pulse is not None  # noqa: S101 - asked of members only
        row = self._connection.execute(
            "SELECT 1 FROM member WHERE id = ?", (self._pulse.member_id,)
        ).fetchone()
        return row is None

    def forget_membership(self) -> None:
        """After an expulsion: the next poll joins again as somebody new."""
        self.owned.clear()
        self._end_pulse()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.owned.pop(partition, None)

    def release(self, partitions: Collection[TopicPartition]) -> None:
        assert self._pulse is not None  # noqa: S101 - only members own something
        pulse = self._pulse
        ids = [self.owned[partition].partition_id for partition in partitions]
        self.drop(partitions)
        self._writer.run(lambda t: groups.release(t, pulse.group_id, pulse.member_id, ids))

    def claim(self) -> list[Claimed]:
        assert self._pulse is not None  # noqa: S101 - only members claim
        pulse = self._pulse
        claimed = self._writer.run(lambda t: groups.claim(t, pulse.group_id, pulse.member_id))
        self.owned.update({own.partition: own for own in claimed})
        return claimed

    def start_commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> Operation[CommitResult]:
        offsets = dict(offsets)
        claims = {p: self.owned[p] for p in offsets if p in self.owned}
        member_id = self._pulse.member_id if self._pulse else ""

        def decide(transaction: Transaction) -> CommitResult:
            group_id = groups.ensure(transaction, self.group)
            return CommitResult(
                offsets, groups.commit(transaction, group_id, member_id, claims, offsets)
            )

        operation = Operation(decide)
        self._writer.submit(operation)
        return operation

    def leave(self) -> None:
        """Hand everything over at once. A broker that cannot write finds out by the lock."""
        if self._pulse is None:
            return
        member_id = self._pulse.member_id
        self._keeper.forget(self._pulse)
        try:
            self._writer.run(lambda t: groups.remove(t, member_id, still_dead=lambda: True))
        finally:
            self.owned.clear()
            self._end_pulse()

    def _start_pulse(self, member_id: str, group_id: int) -> Pulse:
        sign = SignOfLife(self._members, member_id, time.monotonic())
        pulse = Pulse(sign, member_id, group_id, self._settings.poll_interval_max_seconds)
        self._keeper.watch(pulse)
        pulse.poll_begins()
        return pulse

    def _end_pulse(self) -> None:
        if self._pulse is not None:
            self._keeper.forget(self._pulse)
            self._pulse.sign.end()
            self._pulse = None

    def _generation(self) -> int | None:
        assert self._pulse is not None  # noqa: S101 - asked of members only
        generation = self._connection.execute(
            "SELECT generation FROM consumer_group WHERE id = ?", (self._pulse.group_id,)
        ).get
        assert generation is None or isinstance(generation, int)  # noqa: S101 - the column's type
        return generation
