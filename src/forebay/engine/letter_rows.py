"""A dead letter as a row of the kafka_consumer mod's CSV, and back, byte for byte."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forebay.core.envelope import user_headers
from forebay.core.failures import UNKNOWN, Failure
from forebay.core.records import Record
from forebay.engine.csv_values import ENCODING, cells_of, iso_time, milliseconds, record_in
from forebay.engine.dead_letters import DeadLetter

COLUMNS = (
    *("timestamp", "topic", "partition", "offset", "key", "value"),
    *("error_type", "error_message", "stack_trace", "processing_time_ms", "retry_count", ENCODING),
)

_UNSAID = Failure(UNKNOWN, "")


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


def row_of(letter: DeadLetter) -> list[object]:
    record, envelope = letter.record, letter.envelope
    failure, origin = envelope.failure or _UNSAID, envelope.origin
    key, value, encoding = cells_of(record, user_headers(record.headers))
    return [
        iso_time(envelope.failed_ms),
        origin.topic,
        origin.partition,
        origin.offset,
        key,
        value,
        failure.error or failure.category,
        failure.reason.removeprefix(f"{failure.error}: "),
        failure.stack,
        "" if letter.processing_ms is None else letter.processing_ms,
        envelope.replay_number,
        encoding,
    ]


def letter_of(row: Mapping[str, str]) -> FiledLetter:
    """Raises ValueError, TypeError or KeyError for what is no whole row."""
    return FiledLetter(
        record_in(row),
        milliseconds(row["timestamp"]),
        row["error_type"],
        row["error_message"],
        row["stack_trace"],
        float(row["processing_time_ms"]) if row["processing_time_ms"] else None,
        int(row["retry_count"] or 0),
    )


def letter_in(columns: Sequence[str], row: Sequence[str]) -> FiledLetter | None:
    """None for a row that was cut or changed."""
    try:
        return letter_of(dict(zip(columns, row, strict=True)))
    except (ValueError, TypeError, KeyError):
        return None
