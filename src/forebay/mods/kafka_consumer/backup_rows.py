"""A polled record as a row of the backup CSV, and back, byte for byte."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from forebay.core.errors import Unusable
from forebay.core.records import Record
from forebay.engine.csv_files import cells
from forebay.engine.csv_values import (
    ENCODING,
    as_lines,
    cells_of,
    iso_time,
    milliseconds,
    record_in,
)

COLUMNS = (
    *("timestamp", "topic", "partition", "offset", "key", "value", "message_size"),
    ENCODING,
)
HEAD = as_lines([COLUMNS])


class Polled(NamedTuple):
    at_ms: int
    record: Record


def rows_of(polled: Iterable[Polled]) -> Iterator[Sequence[object]]:
    told_ms, timestamp = -1, ""
    for at_ms, record in polled:
        if at_ms != told_ms:
            told_ms, timestamp = at_ms, iso_time(at_ms)
        key, value, encoding = cells_of(record, record.headers)
        size = len(record.value or b"")
        place = (record.topic, record.partition, record.offset)
        yield timestamp, *place, key, value, size, encoding


def record_of(columns: Sequence[str], row: Sequence[str]) -> Record | None:
    """Its timestamp is when it was polled. None for a row that was cut or changed."""
    try:
        written = dict(zip(columns, row, strict=True))
        record = record_in(written)
        at_ms = milliseconds(written["timestamp"])
        int(written["message_size"])
    except (ValueError, TypeError, KeyError):
        return None
    return None if at_ms is None else record._replace(timestamp_ms=at_ms)


def is_row(row: Sequence[str]) -> bool:
    return record_of(COLUMNS, row) is not None


def records_in(rows: Iterable[Sequence[str]], path: Path) -> Iterator[Record | None]:
    """None for each row that cannot be read.

    A file that was truncated while it was written may lack its first line, or have it again.
    """
    columns: Sequence[str] = ()
    for row in rows:
        if tuple(row) in {COLUMNS, COLUMNS[:-1]}:
            columns = row
        elif not columns and record_of(COLUMNS, row) is None:
            raise Unusable(
                f"{path} is no backup of the mod: its first line is not "
                f"{','.join(COLUMNS[:-1])}[,{ENCODING}]. Nothing of it was read. Name another file."
            )
        elif row:
            columns = columns or COLUMNS
            yield record_of(columns, row)


def is_ours(first_row: bytes) -> bool:
    """A torn first line may be; so may a row, where a truncation took the line before it."""
    return HEAD.startswith(first_row) or is_row(cells(first_row))
