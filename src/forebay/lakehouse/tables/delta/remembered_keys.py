"""The keys that a table's partitions hold, as hashes: most batches need not look into the table."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

import polars as pl

PartitionValues: TypeAlias = tuple[object, ...]

KEYS_MAX = 4_000_000


class RememberedKeys:
    """8 bytes a key, of the partitions that were touched last.

    A hash that is not here is not in the table; one that is may be another key's, so the table is
    asked. Forgotten whenever somebody else has written.
    """

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._partitions: OrderedDict[PartitionValues, pl.Series] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def may_hold(
        self, partition: PartitionValues, hashes: pl.Series, load: Callable[[], pl.Series]
    ) -> pl.Series:
        """Of each hash, whether its key may be in the partition."""
        if partition not in self._partitions:
            self._partitions[partition] = load()
        self._partitions.move_to_end(partition)
        known = self._partitions[partition]
        hits = known.filter(known.is_in(hashes.implode()))
        self._make_room()
        return hashes.is_in(hits.implode())

    def add(self, partition: PartitionValues, hashes: pl.Series) -> None:
        known = self._partitions.get(partition)
        if known is not None:
            self._partitions[partition] = pl.concat([known, hashes], rechunk=True)
            self._make_room()

    def forget(self) -> None:
        self._partitions.clear()

    def _make_room(self) -> None:
        """A partition too large for all the room is read again for each batch."""
        while self._partitions and len(self) > self._keys_max:
            self._partitions.popitem(last=False)


def hashes_of(key: tuple[str, ...]) -> pl.Expr:
    return pl.struct(key).hash().alias("hash")
