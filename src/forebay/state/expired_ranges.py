"""Offsets that retention deleted before their group had read them."""

from typing import NamedTuple

from forebay.core.records import Offset
from forebay.state.port import Database


class ExpiredRange(NamedTuple):
    """From `from_offset` up to and without `to_offset`."""

    group: str
    topic: str
    partition: int
    from_offset: Offset
    to_offset: Offset
    at_ms: int


class ExpiredRanges:
    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, expired: ExpiredRange) -> None:
        """Durable on return. Idempotent."""
        with self._database.transaction() as transaction:
            transaction.execute(
                "INSERT INTO expired_ranges (consumer_group, topic, source_partition, "
                "from_offset, to_offset, at_ms) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                expired,
            )

    def rows(self, group: str | None = None) -> list[ExpiredRange]:
        """In the order they were found; of one group or of all."""
        found = self._database.read(
            "SELECT consumer_group, topic, source_partition, from_offset, to_offset, at_ms "
            "FROM expired_ranges WHERE consumer_group = coalesce(?, consumer_group) "
            "ORDER BY at_ms, consumer_group, topic, source_partition, from_offset",
            (group,),
        )
        return [
            ExpiredRange(str(group), str(topic), *(int(number or 0) for number in numbers))
            for group, topic, *numbers in found
        ]
