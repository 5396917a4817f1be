"""The three ways in which a batch becomes one commit, or a few that stand where it began."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import assert_never

import polars as pl

from forebay.lakehouse.tables.delta.handle import Positions, TableHandle
from forebay.lakehouse.tables.delta.keyed_rows import KeyedRows, Part
from forebay.lakehouse.tables.delta.merging import PARTITIONS_IN_ONE_MERGE_MAX, matching
from forebay.lakehouse.tables.delta.remembered_keys import RememberedKeys
from forebay.lakehouse.tables.port import WriteMode


class BatchWriter:
    """`stands_at` and `reaches`: the positions before the batch and after it."""

    def __init__(self, mode: WriteMode, key: tuple[str, ...], remembered: RememberedKeys) -> None:
        self._mode = mode
        self._key = key
        self._remembered = remembered

    def write(
        self, handle: TableHandle, frame: pl.DataFrame, stands_at: Positions, reaches: Positions
    ) -> None:
        if self._mode == "append" or frame.is_empty():
            handle.append(frame, reaches)
            return
        rows = KeyedRows(handle, self._key, self._remembered)
        match self._mode:
            case "append_missing":
                self._append_missing(handle, rows, frame, reaches)
            case "upsert":
                self._upsert(handle, rows, frame, (stands_at, reaches))
            case _:
                assert_never(self._mode)

    def _append_missing(
        self, handle: TableHandle, rows: KeyedRows, frame: pl.DataFrame, reaches: Positions
    ) -> None:
        parts = list(rows.parts(rows.one_of_each(frame, newest=False)))
        missing = [rows.missing(part) for part in parts]
        handle.append(pl.concat(missing), reaches)
        _remember(rows, parts, missing)

    def _upsert(
        self,
        handle: TableHandle,
        rows: KeyedRows,
        frame: pl.DataFrame,
        positions: tuple[Positions, Positions],
    ) -> None:
        stands_at, reaches = positions
        parts = list(rows.parts(rows.one_of_each(frame, newest=True)))
        split = [rows.split(part) for part in parts]
        missing = [missing for missing, _ in split]
        changed = [
            Part(part.values, changed)
            for part, (_, changed) in zip(parts, split, strict=True)
            if not changed.is_empty()
        ]
        *early, last = _chunks(changed)
        for chunk in early:
            self._merge(handle, chunk, [], stands_at)
        if not self._merge(handle, last, missing, reaches):
            handle.append(frame.clear(), reaches)
        _remember(rows, parts, missing)

    def _merge(
        self,
        handle: TableHandle,
        changed: Sequence[Part],
        missing: Sequence[pl.DataFrame],
        positions: Positions,
    ) -> bool:
        """False where it found nothing to do, and so stored no position either."""
        frame = pl.concat([*(part.rows for part in changed), *missing])
        if not changed:
            handle.append(frame, positions)
            return True
        touched = [part.values for part in changed]
        nulls = [name for name in self._key if frame[name].has_nulls()]
        condition = matching(self._key, handle.partition_by, touched, nulls)
        return handle.replace(frame, condition, positions)


def _remember(rows: KeyedRows, parts: Sequence[Part], missing: Sequence[pl.DataFrame]) -> None:
    for part, added in zip(parts, missing, strict=True):
        rows.stored(part, added)


def _chunks(changed: Sequence[Part]) -> Iterator[list[Part]]:
    """At least one, so that the batch has its last commit."""
    rest = iter(changed)
    yield list(islice(rest, PARTITIONS_IN_ONE_MERGE_MAX))
    while chunk := list(islice(rest, PARTITIONS_IN_ONE_MERGE_MAX)):
        yield chunk
