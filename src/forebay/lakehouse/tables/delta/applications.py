"""Positions as Delta keeps them: a number for each application that writes a table.

An application is one source partition of one sink, and the incarnation of its topic.
"""

from collections.abc import Iterable, Iterator

from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.port import StoredPosition

NOTHING_YET = -1

_OURS = "forebay"


def application_of(sink: str, source: SourcePartition) -> str:
    """The incarnation is last, for it may hold any character."""
    return f"{_OURS}/{sink}/{source.topic}/{source.partition}/{source.incarnation}"


def offset_in(number: int | None) -> Offset | None:
    return None if number in {None, NOTHING_YET} else number


def positions_among(applications: Iterable[tuple[str, int]]) -> Iterator[StoredPosition]:
    """Of all sinks; what other programs keep in the same table is passed over."""
    for name, number in applications:
        parts = name.split("/", 4)
        offset = offset_in(number)
        if len(parts) == 5 and parts[0] == _OURS and parts[3].isdecimal() and offset is not None:
            _, sink, topic, partition, incarnation = parts
            source = SourcePartition(topic, int(partition), incarnation)
            yield StoredPosition(sink, source, offset)
