from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from forebay.core.records import Offset

Row_contra = TypeVar("Row_contra", contravariant=True)


class SourcePartition(NamedTuple):
    """Where rows came from. `incarnation` tells a topic from others that had or get its name."""

    topic: str
    partition: int
    incarnation: str


class Sink(Protocol[Row_contra]):
    """A store that keeps rows and the position they came from in one transaction."""

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        """The next offset to read of each partition, None where nothing was ever stored.

        Blocking. Idempotent.
        """
        ...

    def commit(
        self, rows: Sequence[Row_contra], next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        """Store rows and positions together or not at all.

        Blocking. Raises RowsRefused where the rows are the cause, Fenced where another writer has
        moved a position, Unavailable where it may pass.
        After Unavailable the caller asks `position` before it tries again: the commit may have
        happened.
        """
        ...

    def close(self) -> None:
        """May repeat."""
        ...
