"""How many records are in front of a group on one topic, from the broker and the group's notes."""

from forebay.broker.port import Admin, GroupPosition
from forebay.core.commit_notes import read_note
from forebay.core.errors import UnknownGroup
from forebay.core.records import TopicPartition


def unresolved_on(admin: Admin, group: str, topic: str) -> int:
    """End less committed, less what is resolved above the watermark. Blocking."""
    try:
        described = admin.describe_group(group).positions
    except UnknownGroup:
        described = ()
    known = [position for position in described if position.partition.topic == topic]
    if known:
        return sum(_unresolved(position) for position in known)
    (description,) = admin.describe_topics([topic])
    return _all_of(admin, topic, description.partitions)


def _unresolved(position: GroupPosition) -> int:
    note = position.committed and read_note(position.committed.metadata)
    return max(0, position.lag - (note.above if note else 0))


def _all_of(admin: Admin, topic: str, partitions: int) -> int:
    places = [TopicPartition(topic, number) for number in range(partitions)]
    return sum(end - low for low, end in admin.watermarks(places).values())
