"""What the file says of a partition's ends, of time, and of how far groups have come."""

from collections.abc import Collection

import apsw

from forebay.broker.embedded import topics
from forebay.broker.embedded.schema import OFFSET_MASK, row_id
from forebay.broker.port import Watermarks
from forebay.core.records import CommittedOffset, Offset, TopicPartition


def marks_of(connection: apsw.Connection, partition: TopicPartition) -> Watermarks:
    id = topics.load(connection, partition.topic).partition_id(partition.partition)
    low, end = connection.execute("SELECT low, next FROM partition WHERE id = ?", (id,)).get
    return Watermarks(low, end)


def offset_for_time(
    connection: apsw.Connection, partition: TopicPartition, timestamp_ms: int
) -> Offset:
    """Timestamps come from senders and need not rise, so this reads until it finds one."""
    id = topics.load(connection, partition.topic).partition_id(partition.partition)
    low, end = marks_of(connection, partition)
    found = connection.execute(
        "SELECT id FROM log WHERE id >= ? AND id < ? AND timestamp_ms >= ? ORDER BY id LIMIT 1",
        (row_id(id, low), row_id(id, end), timestamp_ms),
    ).get
    return end if found is None else int(found) & OFFSET_MASK


def committed_offsets(
    connection: apsw.Connection, group: str, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, CommittedOffset | None]:
    known = group_commits(connection, group)
    return {partition: known.get(partition) for partition in partitions}


def group_commits(connection: apsw.Connection, group: str) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(topic, number): CommittedOffset(offset, metadata)
        for topic, number, offset, metadata in connection.execute(
            "SELECT topic.name, partition.number, next_offset, metadata FROM committed "
            "JOIN consumer_group ON consumer_group.id = committed.consumer_group "
            "JOIN partition ON partition.id = committed.partition "
            "JOIN topic ON topic.id = partition.topic WHERE consumer_group.name = ?",
            (group,),
        )
    }
