"""Whether groups have read and resolved all there is, as the broker tells it."""

from collections.abc import Iterable

from forebay.broker.port import Admin
from forebay.core.errors import UnknownGroup
from forebay.core.records import Offset, TopicPartition


def is_drained(admin: Admin, readers: Iterable[tuple[str, str]]) -> bool:
    """`readers`: (group, topic). Commits are read first, ends after: what is committed had its
    outputs acknowledged, so an end that nobody has passed hides nothing. Blocking.
    """
    pairs = list(readers)
    committed = {group: committed_of(admin, group) for group in {group for group, _ in pairs}}
    return all(_has_read_all(admin, committed[group], topic) for group, topic in pairs)


def _has_read_all(admin: Admin, committed: dict[TopicPartition, Offset], topic: str) -> bool:
    (described,) = admin.describe_topics([topic])
    places = [TopicPartition(topic, number) for number in range(described.partitions)]
    return all(committed.get(at, low) >= end for at, (low, end) in admin.watermarks(places).items())


def committed_of(admin: Admin, group: str) -> dict[TopicPartition, Offset]:
    try:
        positions = admin.describe_group(group).positions
    except UnknownGroup:
        return {}
    return {known.partition: known.committed.offset for known in positions if known.committed}
