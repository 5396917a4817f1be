"""Keys that a table holds twice, found in little memory: by hash first, then by themselves."""

from collections.abc import Iterator

import polars as pl

from forebay.lakehouse.tables.delta.remembered_keys import hashes_of

SHOWN_MAX = 1_000


def doubled_keys(scan: pl.LazyFrame, key: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Key and how many rows have it; the first thousand of them."""
    names = list(key)
    hashes = scan.select(hashes_of(key)).collect(engine="streaming").to_series()
    twice = hashes.filter(hashes.is_duplicated()).unique()
    if twice.is_empty():
        return
    suspects = scan.select(names).filter(pl.struct(names).hash().is_in(twice.implode()))
    counted = suspects.group_by(names).len("rows").filter(pl.col("rows") > 1).sort(names)
    for *values, rows in counted.head(SHOWN_MAX).collect(engine="streaming").iter_rows():
        yield ", ".join(map(str, values)), rows
