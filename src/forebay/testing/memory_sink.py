from collections.abc import Collection, Mapping, Sequence
from typing import Any

from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition


class MemorySink:
    """Keeps rows and positions in this process."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._positions: dict[SourcePartition, Offset] = {}

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        return {partition: self._positions.get(partition) for partition in partitions}

    def commit(self, rows: Sequence[Any], next_offsets: Mapping[SourcePartition, Offset]) -> None:
        self.rows += rows
        self._positions.update(next_offsets)

    def close(self) -> None:
        """Nothing is open."""
