"""Rows as the columns of the table that takes them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from types import NoneType
from typing import NoReturn

import polars as pl

from forebay.core.errors import RowsRefused
from forebay.lakehouse.tables.delta.column_types import LiveColumn
from forebay.state.sql_values import Column, sql_type, stored_value

Row = Mapping[str, object]

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

_AS_THEY_ARE: tuple[tuple[type[pl.DataType], set[type]], ...] = (
    (pl.String, {str}),
    (pl.Boolean, {bool}),
    (pl.Binary, {bytes}),
    (pl.Date, {date}),
    (pl.Datetime, {datetime}),
    (pl.Decimal, {Decimal}),
)
_INTEGERS: set[type] = {int, bool}
_REALS: set[type] = {float, int, bool}


def frame_of(
    rows: Sequence[Row], columns: Sequence[LiveColumn], needed: Sequence[str]
) -> pl.DataFrame:
    """Raises RowsRefused for what the table could never hold. `needed` must have values."""
    if not rows:
        return pl.DataFrame(schema={column.name: column.dtype for column in columns})
    return pl.DataFrame(
        [_series(rows, column, may_be_null=column.name not in needed) for column in columns]
    )


def check_partitions(frame: pl.DataFrame, partition_by: Sequence[str]) -> None:
    """Raises RowsRefused for the one text by which Delta says that there is none."""
    for name in partition_by:
        if frame.schema[name] == pl.String and (frame[name] == NO_VALUE).any():
            raise RowsRefused(
                f"A row has {NO_VALUE} as {name}, by which its table is partitioned; it would be "
                f"read back as none. Nothing was stored. Give the row another value there."
            )


def _series(rows: Sequence[Row], column: LiveColumn, *, may_be_null: bool) -> pl.Series:
    if column.declared is None:
        return pl.Series(column.name, [None] * len(rows), dtype=column.dtype)
    values = [row.get(column.name) for row in rows]
    kinds = set(map(type, values))
    if NoneType in kinds and not (may_be_null and column.nullable):
        raise RowsRefused(
            f"A row has no {column.name}, without which its table takes none. Nothing was stored. "
            f"Give every row a value there."
        )
    if not kinds - {NoneType} <= _fitting(column):
        values = [_converted(value, column, column.declared) for value in values]
    return _built(column, column.declared, values)


def _built(column: LiveColumn, declared: Column, values: list[object]) -> pl.Series:
    try:
        return pl.Series(column.name, values, dtype=column.dtype, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        for value in values:
            _check_alone(column, declared, value)
        raise _unfitting(column, declared, values[0]) from error


def _check_alone(column: LiveColumn, declared: Column, value: object) -> None:
    """To name the one that does not fit."""
    try:
        pl.Series([value], dtype=column.dtype, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise _unfitting(column, declared, value) from error


def _fitting(column: LiveColumn) -> set[type]:
    """What polars takes rightly without a look at each value."""
    dtype = column.dtype
    if dtype == pl.Datetime("us"):
        return set()
    if dtype.is_integer():
        return _INTEGERS
    if dtype.is_float():
        return _REALS
    return next((kinds for of, kinds in _AS_THEY_ARE if isinstance(dtype, of)), set())


def _converted(value: object, column: LiveColumn, declared: Column) -> object:
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return None
    if isinstance(column.dtype, pl.String):
        return _text(value, declared)
    try:
        return _conversion(column.dtype)(value)
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise _unfitting(column, declared, value) from error


def _text(value: object, declared: Column) -> object:
    """What is declared a number or time goes into a column of text as it is written."""
    kind = declared.kind if sql_type(declared) == "TEXT" else object
    return stored_value(value, Column(declared.name, kind))


def _conversion(dtype: pl.DataType) -> Callable[[object], object]:
    if dtype == pl.Datetime("us"):
        return lambda value: _moment(value).replace(tzinfo=None)
    if dtype.is_float():
        return _real
    return next((convert for of, convert in _CONVERSIONS if isinstance(dtype, of)), _whole)


def _moment(value: object) -> datetime:
    """Without a zone it is UTC."""
    match value:
        case str():
            return _moment(datetime.fromisoformat(value))
        case datetime(tzinfo=None):
            return value.replace(tzinfo=UTC)
        case datetime():
            return value.astimezone(UTC)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case _:
            return _refused(value)


def _date(value: object) -> date:
    match value:
        case str():
            return _date(datetime.fromisoformat(value))
        case datetime():
            return _moment(value).date()
        case date():
            return value
        case _:
            return _refused(value)


def _bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else _refused(value)


def _real(value: object) -> float:
    return float(value) if isinstance(value, int | float | Decimal) else _refused(value)


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int) else _refused(value)


def _flag(value: object) -> bool:
    return value if isinstance(value, bool) else _refused(value)


def _refused(value: object) -> NoReturn:
    raise TypeError(value)


def _exact(value: object) -> Decimal:
    return Decimal(str(value)) if isinstance(value, int | float | str) else _refused(value)


_CONVERSIONS: tuple[tuple[type[pl.DataType], Callable[[object], object]], ...] = (
    (pl.Boolean, _flag),
    (pl.Binary, _bytes),
    (pl.Date, _date),
    (pl.Datetime, _moment),
    (pl.Decimal, _exact),
)


def _unfitting(column: LiveColumn, declared: Column, value: object) -> RowsRefused:
    return RowsRefused(
        f"Column {column.name} is declared {declared.kind.__name__}, its table holds "
        f"{column.dtype}, and a row has a value of type {type(value).__name__} that does not fit. "
        f"Nothing was stored. Correct the row, or the declaration."
    )
