"""The sinks under test, and how to read back what they stored."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from deltalake import DeltaTable

from forebay.core.sinks import Sink
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.lakehouse.tables.port import WriteMode
from forebay.state.file_sink import FileSink
from forebay.state.sql_sink import SqlSink, SqlTable
from forebay.state.sql_values import Column
from forebay.state.sqlite.database import SqliteDatabase

DELTA: dict[str, WriteMode] = {
    "delta": "append",
    "delta-append-missing": "append_missing",
    "delta-upsert": "upsert",
}
IN_AZURITE = "delta-upsert-azurite"
ALL = ("sql", "keyed-sql", "file", *DELTA, IN_AZURITE)
COLUMNS = (Column("id", str), Column("amount", int))


@dataclass(frozen=True)
class Store:
    """`open` gives a sink as a new process would; `rows` is what anybody can read."""

    open: Callable[[], Any]
    rows: Callable[[], list[dict[str, object]]]


def store_at(location: TableLocation, mode: WriteMode) -> Store:
    declared = delta_table(location, mode)
    return Store(lambda: _delta(declared), lambda: delta_rows(location))


def store(kind: str, folder: Path) -> Store:
    if kind == "file":
        path = folder / "rows.ndjson"
        return Store(lambda: _file(path), lambda: _lines(path))
    if kind in DELTA:
        return store_at(TableLocation(str(folder / "rows")), DELTA[kind])
    path = folder / "rows.db"
    table = SqlTable("orders", COLUMNS, ("id",) if kind == "keyed-sql" else ())
    return Store(lambda: _sql(path, table), lambda: _table(path))


@contextmanager
def _file(path: Path):
    sink: Sink[Any] = FileSink(path)
    yield sink
    sink.close()


def delta_table(
    location: TableLocation, mode: WriteMode, columns: tuple[Column, ...] = COLUMNS
) -> DeclaredTable:
    key = () if mode == "append" else (columns[0].name,)
    return DeclaredTable(location, columns, key, mode)


@contextmanager
def _delta(table: DeclaredTable):
    sink: Sink[Any] = DeltaSink("orders-row", table)
    yield sink
    sink.close()


def delta_rows(location: TableLocation) -> list[dict[str, object]]:
    """Without our code, sorted, for files have no order."""
    options = dict(location.options())
    if not DeltaTable.is_deltatable(location.place, storage_options=options):
        return []
    table = DeltaTable(location.place, storage_options=options)
    return pl.scan_delta(table).collect().sort("id").to_dicts()


@contextmanager
def _sql(path: Path, table: SqlTable):
    database = SqliteDatabase(path)
    sink: Sink[Any] = SqlSink(database, "orders-row", table)
    yield sink
    sink.close()
    database.close()


def _lines(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def _table(path: Path) -> list[dict[str, object]]:
    database = SqliteDatabase(path)
    rows = database.read("SELECT id, amount FROM orders")
    database.close()
    return [{"id": id, "amount": amount} for id, amount in rows]
