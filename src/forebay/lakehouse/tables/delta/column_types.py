"""Declared columns, the columns of a live table, and polars' types between them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl
from deltalake import Field, Schema
from deltalake.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructType,
)

from forebay.core.errors import Unusable
from forebay.state.sql_values import Column

_OF_KINDS = (
    (bool, "boolean"),
    (int, "long"),
    (float, "double"),
    (bytes, "binary"),
    (datetime, "timestamp"),
    (date, "date"),
)
_DTYPES: dict[str, pl.DataType] = {
    "string": pl.String(),
    "long": pl.Int64(),
    "integer": pl.Int32(),
    "short": pl.Int16(),
    "byte": pl.Int8(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
    "binary": pl.Binary(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True, slots=True)
class LiveColumn:
    """A column of the table as it is. `declared` None: rows say nothing of it, it stays null."""

    name: str
    dtype: pl.DataType
    nullable: bool
    declared: Column | None


def schema_of(columns: Sequence[Column]) -> Schema:
    """Of a new table."""
    return Schema(
        [Field(column.name, PrimitiveType(_delta_type(column.kind))) for column in columns]
    )


def _delta_type(kind: type) -> str:
    return next((name for of, name in _OF_KINDS if issubclass(kind, of)), "string")


def live_columns(
    table: str, schema: Schema, declared: Sequence[Column], needed: Sequence[str]
) -> tuple[LiveColumn, ...]:
    """Raises Unusable where rows as declared could never be stored in the table that is there.

    `needed` are the key and what the table is partitioned by.
    """
    by_name = {column.name: column for column in declared}
    columns = tuple(
        LiveColumn(field.name, _dtype(field.type), field.nullable, by_name.get(field.name))
        for field in schema.fields
    )
    _check_columns(table, columns, by_name, needed)
    return columns


def _check_columns(
    table: str,
    columns: Sequence[LiveColumn],
    declared: dict[str, Column],
    needed: Sequence[str],
) -> None:
    there = {column.name for column in columns}
    for name in needed:
        if name not in there:
            raise Unusable(
                f"Table {table} has no column {name}; it has {', '.join(sorted(there))}. Nothing "
                f"was stored. Add the column, declare another key, or choose another table."
            )
        if name not in declared:
            raise Unusable(
                f"Table {table} is partitioned by {name}, which its rows were declared without. "
                f"Nothing was stored. Declare that column, or choose another table."
            )
    if not there & declared.keys():
        raise Unusable(
            f"Table {table} has no column {next(iter(declared))}; it has "
            f"{', '.join(sorted(there))}. Nothing was stored. Choose another table."
        )
    for column in columns:
        if column.declared is None and not column.nullable:
            raise Unusable(
                f"Table {table} wants a value for {column.name} in every row, and its rows were "
                f"declared without that column. Nothing was stored. Declare it, or let the table "
                f"have none there."
            )
        if column.declared is not None and column.dtype.is_nested():
            raise Unusable(
                f"Column {column.name} of table {table} holds lists or structures, which rows "
                f"cannot fill. Nothing was stored. Leave that column out, or choose another table."
            )


def _dtype(delta_type: DataType) -> pl.DataType:
    match delta_type:
        case PrimitiveType(type=name):
            return _primitive(name)
        case ArrayType(element_type=element):
            return pl.List(_dtype(element))
        case MapType(key_type=key, value_type=value):
            return pl.List(pl.Struct({"key": _dtype(key), "value": _dtype(value)}))
        case StructType(fields=fields):
            return pl.Struct({field.name: _dtype(field.type) for field in fields})
        case _:
            raise _unknown(str(delta_type))


def _primitive(name: str) -> pl.DataType:
    if (decimal := _DECIMAL.fullmatch(name)) is not None:
        return pl.Decimal(int(decimal[1]), int(decimal[2]))
    if name not in _DTYPES:
        raise _unknown(name)
    return _DTYPES[name]


def _unknown(name: str) -> Unusable:
    return Unusable(
        f"A table has a column of type {name}, which this version does not know. Nothing was "
        f"stored. Choose another table, or a newer version."
    )
