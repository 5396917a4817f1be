"""Which rows of a batch the table has already, and which it has otherwise."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from forebay.lakehouse.tables.delta.handle import TableHandle
from forebay.lakehouse.tables.delta.remembered_keys import (
    PartitionValues,
    RememberedKeys,
    hashes_of,
)
from forebay.lakehouse.tables.delta.troubles import told_when_reading


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of a batch that belong into one partition of the table."""

    values: PartitionValues
    rows: pl.DataFrame


class KeyedRows:
    """Looks only into the partitions that a batch touches: a key is one within its partition."""

    def __init__(
        self, handle: TableHandle, key: tuple[str, ...], remembered: RememberedKeys
    ) -> None:
        self._handle = handle
        self._key = list(key)
        self._hashes = hashes_of(key)
        self._remembered = remembered
        self._partition_by = list(handle.partition_by)

    def one_of_each(self, frame: pl.DataFrame, *, newest: bool) -> pl.DataFrame:
        identity = list(dict.fromkeys([*self._key, *self._partition_by]))
        return frame.unique(identity, keep="last" if newest else "first", maintain_order=True)

    def parts(self, frame: pl.DataFrame) -> Iterator[Part]:
        if not self._partition_by:
            yield Part((), frame)
            return
        parts = frame.partition_by(self._partition_by, as_dict=True, maintain_order=True)
        for values, rows in parts.items():
            yield Part(values, rows)

    def missing(self, part: Part) -> pl.DataFrame:
        """The rows whose keys the partition does not hold."""
        suspects = self._suspects(part)
        if suspects.is_empty():
            return part.rows
        there = self._read(part, suspects, self._key)
        return _without(part.rows, there, self._key)

    def split(self, part: Part) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows whose keys are missing, and those that the table holds otherwise."""
        suspects = self._suspects(part)
        if suspects.is_empty():
            return part.rows, suspects
        there = self._read(part, suspects, part.rows.columns)
        missing = _without(part.rows, there, self._key)
        known = _without(part.rows, missing, self._key)
        comparable = [name for name, dtype in known.schema.items() if not dtype.is_nested()]
        return missing, _without(known, there, comparable)

    def stored(self, part: Part, missing: pl.DataFrame) -> None:
        self._remembered.add(part.values, self._hashes_in(missing))

    def _suspects(self, part: Part) -> pl.DataFrame:
        with told_when_reading(self._handle.location):
            may_be_there = self._remembered.may_hold(
                part.values, self._hashes_in(part.rows), lambda: self._load(part)
            )
        return part.rows.filter(may_be_there)

    def _hashes_in(self, rows: pl.DataFrame) -> pl.Series:
        return rows.select(self._hashes).to_series()

    def _load(self, part: Part) -> pl.Series:
        keys = self._within(part).select(self._hashes)
        return keys.collect(engine="streaming").to_series()

    def _read(self, part: Part, rows: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
        """What the table holds of the keys of these rows."""
        keys = rows.lazy().select(self._key)
        with told_when_reading(self._handle.location):
            held = (
                self._within(part)
                .select(columns)
                .join(keys, on=self._key, how="semi", nulls_equal=True)
            )
            return held.collect(engine="streaming")

    def _within(self, part: Part) -> pl.LazyFrame:
        scan = self._handle.scan()
        for name, value in zip(self._partition_by, part.values, strict=True):
            scan = scan.filter(pl.col(name) == pl.lit(value, dtype=part.rows.schema[name]))
        return scan


def _without(rows: pl.DataFrame, others: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Those that no other one equals in these columns; a null equals a null."""
    return rows.join(others, on=names, how="anti", nulls_equal=True, maintain_order="left")
