"""Values of rows as a SQL database keeps them: text, whole and real numbers, bytes."""

from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import orjson

from forebay.core.errors import InvalidName, RowsRefused
from forebay.state.port import Value

_TYPES = {bool: "BIGINT", int: "BIGINT", float: "DOUBLE PRECISION", bytes: "BLOB"}
_SPELT = (Decimal, UUID, Path)


class Column(NamedTuple):
    """`kind` is Python's type. All but numbers and bytes becomes text: dicts and lists as JSON."""

    name: str
    kind: type = str


def sql_type(column: Column) -> str:
    fitting = (sql for kind, sql in _TYPES.items() if issubclass(column.kind, kind))
    return next(fitting, "TEXT")


def quoted(name: str) -> str:
    """A table's or column's name that cannot be read as anything else."""
    if not name or "\0" in name:
        raise InvalidName(f"{name!r} cannot be the name of a table or column. Choose another.")
    return '"' + name.replace('"', '""') + '"'


def stored_value(value: object, column: Column) -> Value:
    """Raises RowsRefused for what the column was not declared for."""
    if isinstance(value, Enum):
        value = value.value
    match sql_type(column), value:
        case _, None:
            return None
        case "BIGINT", int():
            return int(value)
        case "DOUBLE PRECISION", int() | float():
            return _real(value, column)
        case "BLOB", bytes() | bytearray() | memoryview():
            return bytes(value)
        case "TEXT", _:
            return _text(value, column)
        case _:
            raise _unfitting(value, column)


def _real(value: float, column: Column) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise _unfitting(value, column) from error


def _text(value: object, column: Column) -> str:
    match value:
        case str():
            return value
        case datetime() | date() | time():
            return value.isoformat()
    if isinstance(value, _SPELT):
        return str(value)
    if column.kind is str:
        raise _unfitting(value, column)
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError as error:
        raise _unfitting(value, column) from error


def _unfitting(value: object, column: Column) -> RowsRefused:
    return RowsRefused(
        f"Column {column.name} is declared {column.kind.__name__} and was given a value of type "
        f"{type(value).__name__}. Nothing was stored. Correct the row, or the declaration."
    )
