"""The sinks under test, and how to read back what they stored."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from forebay.core.sinks import Sink
from forebay.state.file_sink import FileSink
from forebay.state.sql_sink import SqlSink, SqlTable
from forebay.state.sql_values import Column
from forebay.state.sqlite.database import SqliteDatabase

ALL = ("sql", "keyed-sql", "file")
COLUMNS = (Column("id", str), Column("amount", int))


@dataclass(frozen=True)
class Store:
    """`open` gives a sink as a new process would; `rows` is what anybody can read."""

    open: Callable[[], Any]
    rows: Callable[[], list[dict[str, object]]]


def store(kind: str, folder: Path) -> Store:
    if kind == "file":
        path = folder / "rows.ndjson"
        return Store(lambda: _file(path), lambda: _lines(path))
    path = folder / "rows.db"
    table = SqlTable("orders", COLUMNS, ("id",) if kind == "keyed-sql" else ())
    return Store(lambda: _sql(path, table), lambda: _table(path))


@contextmanager
def _file(path: Path):
    sink: Sink[Any] = FileSink(path)
    yield sink
    sink.close()


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
