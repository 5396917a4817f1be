"""A record's key, value and headers in the cells of a CSV row, and back, byte for byte.

The cell `encoding` is `utf-8` where key and value are text and there are no headers. Otherwise it
is a JSON object of what differs:
`{"key": "null", "value": "base64", "headers": [["name", "text"], …]}`.
"""

import base64
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import orjson

from forebay.core.records import Header, Headers, Record

ENCODING = "encoding"

_PLAIN = "utf-8"

Mark: TypeAlias = Literal["utf-8", "base64", "null"]


def as_lines(rows: Iterable[Sequence[object]], errors: str = "backslashreplace") -> bytes:
    """The last byte of a row is a line feed outside of quotes."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", errors)


def cells_of(record: Record, headers: Headers) -> tuple[str, str, str]:
    """What stands for its key, its value, and the encoding of both and of these headers."""
    key, key_mark = _written(record.key)
    value, value_mark = _written(record.value)
    return key, value, _encoding(key_mark, value_mark, headers)


def record_in(row: Mapping[str, str]) -> Record:
    """With the place it came from. Raises ValueError, TypeError or KeyError for no whole row.

    Files from before there was an `encoding` hold text alone.
    """
    marks = _marks(row.get(ENCODING, _PLAIN))
    return Record(
        _read(row["value"], marks.get("value", _PLAIN)),
        _read(row["key"], marks.get("key", _PLAIN)),
        [_read_header(pair) for pair in marks.get("headers", [])],
        row["topic"],
        int(row["partition"]),
        int(row["offset"]),
    )


def iso_time(timestamp_ms: int) -> str:
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(text: str) -> int | None:
    """A time without a zone is UTC, as the mod's first writers meant it."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)


def _written(value: bytes | None) -> tuple[str, Mark]:
    if value is None:
        return "", "null"
    try:
        return value.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(value).decode(), "base64"


def _encoding(key: Mark, value: Mark, headers: Headers) -> str:
    if key == _PLAIN == value and not headers:
        return _PLAIN
    marks: dict[str, object] = {
        name: mark for name, mark in (("key", key), ("value", value)) if mark != _PLAIN
    }
    if headers:
        marks["headers"] = [[name, _written_header(content)] for name, content in headers]
    return orjson.dumps(marks).decode()


def _written_header(content: bytes | None) -> str | dict[str, str] | None:
    text, mark = _written(content)
    if mark == "null":
        return None
    return text if mark == _PLAIN else {"base64": text}


def _marks(encoding: str) -> dict[str, Any]:
    if encoding == _PLAIN:
        return {}
    match orjson.loads(encoding):
        case dict() as marks:
            return marks
        case other:
            raise ValueError(other)


def _read(text: str, mark: object) -> bytes | None:
    match mark:
        case "null":
            return None
        case "utf-8":
            return text.encode("utf-8", "surrogateescape")
        case "base64":
            return base64.b64decode(text, validate=True)
        case _:
            raise ValueError(mark)


def _read_header(pair: object) -> Header:
    match pair:
        case [str(name), None]:
            return name, None
        case [str(name), str(text)]:
            return name, text.encode()
        case [str(name), {"base64": str(text)}]:
            return name, base64.b64decode(text, validate=True)
        case _:
            raise ValueError(pair)
