"""Consumer groups as rows: who is a member, who reads what, and how far each group has come.

There is no coordinator. Whoever sees a change writes new targets; an owner lets go in its own
poll, and only what nobody owns can be claimed. So two live members never read one partition.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from forebay.broker.balance import balance
from forebay.broker.embedded.transaction import Transaction
from forebay.core.errors import Fenced, ForebayError, GroupActive, InvalidRequest
from forebay.core.records import CommittedOffset, Offset, TopicPartition

METADATA_LENGTH_MAX = 4095  # what Kafka takes with its default offset.metadata.max.bytes


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    client_id: str
    host: str
    session_seconds: float
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A partition that a member owns since group generation `claim`."""

    partition: TopicPartition
    partition_id: int
    topic_id: int
    claim: int
    committed: CommittedOffset | None


def ensure(transaction: Transaction, name: str) -> int:
    id = find(transaction, name)
    if id is None:
        transaction.write("INSERT INTO consumer_group (name) VALUES (?)", name)
        id = find(transaction, name)
    assert id is not None  # noqa: S101 - inserted above
    return id


def find(transaction: Transaction, name: str) -> int | None:
    id = transaction.value("SELECT id FROM consumer_group WHERE name = ?", name)
    assert id is None or isinstance(id, int)  # noqa: S101 - a primary key
    return id


def join(transaction: Transaction, group_id: int, member: Member) -> None:
    """Add a member, or change the topics of one."""
    transaction.write(
        "INSERT INTO member (id, consumer_group, client_id, host, session_seconds, topics) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET topics = excluded.topics",
        member.id,
        group_id,
        member.client_id,
        member.host,
        member.session_seconds,
        json.dumps(member.topics),
    )
    rebalance(transaction, group_id)


def remove(transaction: Transaction, member_id: str, *, still_dead: Callable[[], bool]) -> bool:
    """Take a member out, and with it all that it owned. False if it is gone or lives."""
    group_id = transaction.value("SELECT consumer_group FROM member WHERE id = ?", member_id)
    if group_id is None or not still_dead():
        return False
    transaction.write("DELETE FROM member WHERE id = ?", member_id)
    transaction.write("UPDATE ownership SET owner = NULL WHERE owner = ?", member_id)
    rebalance(transaction, group_id)
    return True


def rebalance(transaction: Transaction, group_id: int) -> None:
    """Write who should read what; members come to it in their own polls."""
    subscriptions = {
        id: json.loads(topics)
        for id, topics in transaction.read(
            "SELECT id, topics FROM member WHERE consumer_group = ?", group_id
        )
    }
    ids = _subscribed_partitions(transaction, subscriptions)
    names = {id: partition for partition, id in ids.items()}
    owners = {
        names[id]: owner
        for id, owner in transaction.read(
            "SELECT partition, owner FROM ownership WHERE consumer_group = ? AND owner IS NOT NULL",
            group_id,
        )
        if id in names
    }
    target = balance(ids.keys(), subscriptions, owners)
    transaction.write("UPDATE ownership SET target = NULL WHERE consumer_group = ?", group_id)
    transaction.write_many(
        "INSERT INTO ownership (consumer_group, partition, target) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET target = excluded.target",
        [(group_id, ids[partition], member) for partition, member in target.items()],
    )
    transaction.write(
        "DELETE FROM ownership WHERE consumer_group = ? AND owner IS NULL AND target IS NULL",
        group_id,
    )
    _advance(transaction, group_id)


def rebalance_all(transaction: Transaction) -> None:
    for (group_id,) in transaction.read("SELECT DISTINCT consumer_group FROM member"):
        rebalance(transaction, group_id)


def release(
    transaction: Transaction, group_id: int, member_id: str, partition_ids: Collection[int]
) -> None:
    transaction.write_many(
        "UPDATE ownership SET owner = NULL WHERE consumer_group = ? AND partition = ? "
        "AND owner = ?",
        [(group_id, id, member_id) for id in partition_ids],
    )
    _advance(transaction, group_id)


def claim(transaction: Transaction, group_id: int, member_id: str) -> list[Claimed]:
    """Own whatever is meant for this member and owned by nobody."""
    free = transaction.read(
        "SELECT topic.name, partition.number, partition.id, topic.id, next_offset, metadata "
        "FROM ownership JOIN partition ON partition.id = ownership.partition "
        "JOIN topic ON topic.id = partition.topic "
        "LEFT JOIN committed USING (consumer_group, partition) "
        "WHERE consumer_group = ? AND target = ? AND owner IS NULL ORDER BY 1, 2",
        group_id,
        member_id,
    )
    if not free:
        return []
    generation = transaction.value("SELECT generation FROM consumer_group WHERE id = ?", group_id)
    transaction.write_many(
        "UPDATE ownership SET owner = ?, claim = ? WHERE consumer_group = ? AND partition = ?",
        [(member_id, generation, group_id, row[2]) for row in free],
    )
    return [
        Claimed(
            TopicPartition(name, number),
            partition_id,
            topic_id,
            generation,
            None if offset is None else CommittedOffset(offset, metadata),
        )
        for name, number, partition_id, topic_id, offset, metadata in free
    ]


def commit(
    transaction: Transaction,
    group_id: int,
    member_id: str,
    claims: Mapping[TopicPartition, Claimed],
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> dict[TopicPartition, ForebayError]:
    """Store what this member still owns by the very claim it read under; name the rest."""
    held = {
        (id, generation)
        for id, generation in transaction.read(
            "SELECT partition, claim FROM ownership WHERE consumer_group = ? AND owner = ?",
            group_id,
            member_id,
        )
    }
    failures: dict[TopicPartition, ForebayError] = {}
    rows = []
    for partition, committed in offsets.items():
        own = claims.get(partition)
        if refusal := refused_offset(committed):
            failures[partition] = refusal
        elif own is None or (own.partition_id, own.claim) not in held:
            failures[partition] = fenced(partition)
        else:
            rows.append((group_id, own.partition_id, committed.offset, committed.metadata))
    _store(transaction, rows)
    return failures


def set_offsets(
    transaction: Transaction, name: str, offsets: Mapping[int, CommittedOffset]
) -> None:
    """Where a group without members goes on."""
    group_id = find(transaction, name)
    if group_id is not None:
        check_inactive(transaction, group_id, name)
    else:
        group_id = ensure(transaction, name)
    _store(
        transaction,
        [(group_id, id, committed.offset, committed.metadata) for id, committed in offsets.items()],
    )


def check_inactive(transaction: Transaction, group_id: int, name: str) -> None:
    members = transaction.value("SELECT count(*) FROM member WHERE consumer_group = ?", group_id)
    if members:
        raise GroupActive(
            f"Group {name} has {members} live members, whose next commits would undo this. Nothing "
            f"was changed. Stop them first."
        )


def refused_offset(committed: CommittedOffset) -> ForebayError | None:
    if committed.offset < 0:
        return InvalidRequest(f"Offset {committed.offset} cannot be committed; use 0 or more.")
    if len(committed.metadata) > METADATA_LENGTH_MAX:
        return InvalidRequest(
            f"The metadata of a commit has {len(committed.metadata)} characters; use at most "
            f"{METADATA_LENGTH_MAX}."
        )
    return None


def fenced(partition: TopicPartition) -> Fenced:
    return Fenced(
        f"{partition} is not this member's any more, so its offset was not committed. Drop its "
        f"records: the new owner reads them again."
    )


def next_offset(committed: CommittedOffset | None) -> Offset | None:
    return None if committed is None else committed.offset


def _subscribed_partitions(
    transaction: Transaction, subscriptions: Mapping[str, Collection[str]]
) -> dict[TopicPartition, int]:
    wanted = json.dumps(sorted({topic for topics in subscriptions.values() for topic in topics}))
    rows = transaction.read(
        "SELECT topic.name, partition.number, partition.id FROM topic "
        "JOIN partition ON partition.topic = topic.id "
        "WHERE topic.name IN (SELECT value FROM json_each(?))",
        wanted,
    )
    return {TopicPartition(name, number): id for name, number, id in rows}


def _store(transaction: Transaction, rows: list[tuple[int, int, int, str]]) -> None:
    if rows:
        transaction.write_many(
            "INSERT INTO committed (consumer_group, partition, next_offset, metadata) "
            "VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET next_offset = excluded.next_offset, "
            "metadata = excluded.metadata",
            rows,
        )


def _advance(transaction: Transaction, group_id: int) -> None:
    transaction.write(
        "UPDATE consumer_group SET generation = generation + 1 WHERE id = ?", group_id
    )
    transaction.groups.add(group_id)
