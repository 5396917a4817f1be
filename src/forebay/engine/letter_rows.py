"""A dead letter as a row of the kafka_consumer mod's CSV, and back, byte for byte.

`encoding` is `utf-8` where key and value are text and there are no headers. Otherwise it is a JSON
object of what differs: `{"key": "null", "value": "base64", "headers": [["name", "text"], …]}`.
"""

import base64
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import orjson

from forebay.core.envelope import user_headers
from forebay.core.failures import UNKNOWN, Failure
from forebay.core.records import Header, Record
from forebay.engine.dead_letters import DeadLetter

ENCODING = "encoding"
COLUMNS = (
    *("timestamp", "topic", "partition", "offset", "key", "value"),
    *("error_type", "error_message", "stack_trace", "processing_time_ms", "retry_count", ENCODING),
)

_PLAIN = "utf-8"
_UNSAID = Failure(UNKNOWN, "")

Mark: TypeAlias = Literal["utf-8", "base64", "null"]


@dataclass(frozen=True, slots=True)
class FiledLetter:
    """What a row tells. The record has its key, value and headers, and the place it came from."""

    record: Record
    failed_ms: int | None
    error_type: str
    reason: str
    stack: str
    processing_ms: float | None
    retry_count: int


def as_lines(rows: Iterable[Sequence[object]]) -> bytes:
    """The last byte of a row is a line feed outside of quotes."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def row_of(letter: DeadLetter) -> list[object]:
    """How long its function ran is not told to the file."""
    record, envelope = letter.record, letter.envelope
    failure, origin = envelope.failure or _UNSAID, envelope.origin
    key, key_mark = _written(record.key)
    value, value_mark = _written(record.value)
    return [
        _iso(envelope.failed_ms),
        origin.topic,
        origin.partition,
        origin.offset,
        key,
        value,
        failure.error or failure.category,
        failure.reason,
        failure.stack,
        "",
        envelope.replay_number,
        _encoding(key_mark, value_mark, user_headers(record.headers)),
    ]


def letter_of(row: Mapping[str, str]) -> FiledLetter:
    """Raises ValueError for what is no whole row. Files without `encoding` hold text alone."""
    marks = _marks(row.get(ENCODING, _PLAIN))
    record = Record(
        _read(row["value"], marks.get("value", _PLAIN)),
        _read(row["key"], marks.get("key", _PLAIN)),
        [_read_header(pair) for pair in marks.get("headers", [])],
        row["topic"],
        int(row["partition"]),
        int(row["offset"]),
    )
    return FiledLetter(
        record,
        _milliseconds(row["timestamp"]),
        row["error_type"],
        row["error_message"],
        row["stack_trace"],
        float(row["processing_time_ms"]) if row["processing_time_ms"] else None,
        int(row["retry_count"] or 0),
    )


def _written(value: bytes | None) -> tuple[str, Mark]:
    if value is None:
        return "", "null"
    try:
        return value.decode(), "utf-8"
    except UnicodeDecodeError:
        return base64.b64encode(value).decode(), "base64"


def _encoding(key: Mark, value: Mark, headers: Sequence[Header]) -> str:
    marks: dict[str, object] = {
        name: mark for name, mark in (("key", key), ("value", value)) if mark != _PLAIN
    }
    if headers:
        marks["headers"] = [[name, _written_header(content)] for name, content in headers]
    return orjson.dumps(marks).decode() if marks else _PLAIN


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


def _iso(timestamp_ms: int) -> str:
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(text: str) -> int | None:
    """A time without a zone is UTC, as the mod's first writers meant it."""
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * 1000)
