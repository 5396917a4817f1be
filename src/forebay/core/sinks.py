from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from forebay.core.records import Offset, TopicPartition

Row_contra = TypeVar("Row_contra", contravariant=True)


class Sink(Protocol[Row_contra]):
    """A store that keeps rows and the position they came from in one transaction."""

    def position(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Offset | None]:
        """The next offset to read of each partition, None where nothing was ever stored.

        Blocking. Idempotent.
        """
        ...

    def commit(
        self, rows: Sequence[Row_contra], next_offsets: Mapping[TopicPartition, Offset]
    ) -> None:
        """Store rows and positions together or not at all.

        Blocking. After an error the caller asks `position` before it tries again: the commit may
        have happened.
        """
        ...
