"""Topics in the file: what the admin does to them, and what senders and readers know of them."""

import threading
from collections.abc import Collection
from dataclasses import dataclass

import apsw

from forebay.broker.embedded import groups
from forebay.broker.embedded.schema import PARTITION_ID_MAX
from forebay.broker.embedded.transaction import Transaction
from forebay.broker.port import TopicDescription
from forebay.core.errors import (
    InvalidRequest,
    TopicExists,
    Unavailable,
    UnknownPartition,
    UnknownTopic,
)
from forebay.core.records import TopicPartition
from forebay.core.topics import TopicSpec, check_partitions, check_spec

# Rises whenever a topic is created, extended or deleted by any process.
VERSION = "SELECT value FROM meta WHERE name = 'topics_version'"


@dataclass(frozen=True, slots=True)
class Topic:
    id: int
    name: str
    partition_ids: tuple[int, ...]

    def partition_id(self, number: int) -> int:
        if not 0 <= number < len(self.partition_ids):
            raise UnknownPartition(
                f"Topic {self.name} has partitions 0 to {len(self.partition_ids) - 1}; there is no "
                f"partition {number}. Use one of those, or extend the topic."
            )
        return self.partition_ids[number]


class TopicIndex:
    """Topics by name, read once and again whenever topics have changed."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._topics: dict[str, Topic] = {}
        self._version = -1

    def get(self, name: str, version: int) -> Topic:
        """The topic as of this version. Raises UnknownTopic."""
        if version == self._version and (topic := self._topics.get(name)):
            return topic
        with self._lock:
            if version != self._version:
                self._topics.clear()
                self._version = version
            topic = self._topics[name] = load(self._connection, name)
            return topic

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def load(connection: apsw.Connection, name: str) -> Topic:
    rows = list(
        connection.execute(
            "SELECT topic.id, partition.id FROM topic JOIN partition ON partition.topic = topic.id "
            "WHERE topic.name = ? ORDER BY partition.number",
            (name,),
        )
    )
    if not rows:
        raise unknown(name)
    return Topic(rows[0][0], name, tuple(row[1] for row in rows))


def unknown(name: str) -> UnknownTopic:
    return UnknownTopic(
        f"There is no topic {name}. Nothing was done. Create it: forebay topics create {name}"
    )


def create(transaction: Transaction, spec: TopicSpec, *, exists_ok: bool) -> None:
    names = {row[0] for row in transaction.read("SELECT name FROM topic")}
    if spec.name in names:
        if exists_ok:
            return
        raise TopicExists(
            f"Topic {spec.name} exists already. Nothing was changed. Use another name, "
            f"or extend it."
        )
    check_spec(spec, names)
    _check_room(transaction, spec.partitions)
    transaction.write(
        "INSERT INTO topic (name, retention_ms, retention_bytes) VALUES (?, ?, ?)",
        spec.name,
        spec.retention_ms,
        spec.retention_bytes,
    )
    topic_id = _id_of(transaction, spec.name)
    _add_partitions(transaction, topic_id, 0, spec.partitions)
    _changed(transaction)


def extend(transaction: Transaction, name: str, partitions: int) -> None:
    topic_id = _id_of(transaction, name)
    existing = transaction.value("SELECT count(*) FROM partition WHERE topic = ?", topic_id)
    check_partitions(name, partitions)
    if partitions <= existing:
        raise InvalidRequest(
            f"Topic {name} has {existing} partitions already; a topic can only grow. Ask for more "
            f"than {existing}."
        )
    _check_room(transaction, partitions - existing)
    _add_partitions(transaction, topic_id, existing, partitions)
    transaction.topics.add(topic_id)
    _changed(transaction)


def delete(transaction: Transaction, name: str) -> None:
    """Gone at once for everybody; its rows are swept later, piece by piece."""
    topic_id = _id_of(transaction, name)
    of_topic = "IN (SELECT id FROM partition WHERE topic = ?)"
    for table in ("committed", "ownership"):
        transaction.write(f"DELETE FROM {table} WHERE partition {of_topic}", topic_id)  # noqa: S608 - two literals
    transaction.write(
        "INSERT INTO doomed (partition) SELECT id FROM partition WHERE topic = ?", topic_id
    )
    transaction.write("DELETE FROM partition WHERE topic = ?", topic_id)
    transaction.write("DELETE FROM topic WHERE id = ?", topic_id)
    transaction.topics.add(topic_id)
    _changed(transaction)


def describe(
    connection: apsw.Connection, identity: str, names: Collection[str] | None
) -> list[TopicDescription]:
    found = {
        name: TopicDescription(name, f"{identity}:{id}", count, retention_ms, retention_bytes)
        for id, name, retention_ms, retention_bytes, count in connection.execute(
            "SELECT id, name, retention_ms, retention_bytes, "
            "(SELECT count(*) FROM partition WHERE topic = topic.id) FROM topic"
        )
    }
    for name in names or ():
        if name not in found:
            raise unknown(name)
    return [found[name] for name in sorted(found if names is None else names)]


def partition_id(transaction: Transaction, partition: TopicPartition) -> int:
    id = transaction.value(
        "SELECT partition.id FROM partition JOIN topic ON topic.id = partition.topic "
        "WHERE topic.name = ? AND partition.number = ?",
        partition.topic,
        partition.partition,
    )
    if id is None:
        _id_of(transaction, partition.topic)
        raise UnknownPartition(
            f"Topic {partition.topic} has no partition {partition.partition}. Nothing was done. "
            f"See: forebay topics describe {partition.topic}"
        )
    assert isinstance(id, int)  # noqa: S101 - a primary key
    return id


def _id_of(transaction: Transaction, name: str) -> int:
    id = transaction.value("SELECT id FROM topic WHERE name = ?", name)
    if id is None:
        raise unknown(name)
    assert isinstance(id, int)  # noqa: S101 - a primary key
    return id


def _check_room(transaction: Transaction, more: int) -> None:
    used = transaction.value("SELECT coalesce(max(id), 0) FROM partition")
    if used + more > PARTITION_ID_MAX:
        raise Unavailable(
            f"This broker has given out {used} of its {PARTITION_ID_MAX} partition numbers, which "
            f"are never used again. Nothing was created. Start a new folder."
        )


def _add_partitions(transaction: Transaction, topic_id: int, first: int, end: int) -> None:
    transaction.write_many(
        "INSERT INTO partition (topic, number) VALUES (?, ?)",
        [(topic_id, number) for number in range(first, end)],
    )


def _changed(transaction: Transaction) -> None:
    transaction.write("UPDATE meta SET value = value + 1 WHERE name = 'topics_version'")
    transaction.topics_version = transaction.value(VERSION)
    groups.rebalance_all(transaction)
