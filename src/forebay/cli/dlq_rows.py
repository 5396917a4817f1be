"""A dead letter as a row of a list: of the ledger, or of the mod's file, in the same columns."""

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson

from forebay.cli.ages import ago
from forebay.cli.output import Table
from forebay.cli.payload import one_line
from forebay.cli.times import iso
from forebay.engine.letter_rows import FiledLetter
from forebay.engine.letters import DeadLetter
from forebay.observability.redaction import scrub

HEADS = (
    *("id", "state", "offset", "trace id", "attempts", "category", "reason", "url"),
    *("pipeline", "failed"),
)
_SHORT_ID_LENGTH = 8
_KEY_LENGTH_MAX = 80
_URL = re.compile(rb"https?://[^\s\"'<>\\]+")


class Line(NamedTuple):
    """The cells that a person sees, and what only JSON has."""

    cells: Sequence[object]
    more: Mapping[str, object]


def table_of(lines: Sequence[Line], total: int, *, as_json: bool) -> Table:
    extra = [line.more for line in lines] if as_json else ()
    return Table(HEADS, [line.cells for line in lines], extra, {"total": total})


@dataclass(frozen=True, slots=True)
class Style:
    """People read ages and the beginning of an id, machines moments and all of it."""

    now_ms: int
    as_json: bool

    def moment(self, timestamp_ms: int) -> str:
        return iso(timestamp_ms) if self.as_json else ago(timestamp_ms, self.now_ms)

    def id(self, id: str) -> str:
        return id[:_SHORT_ID_LENGTH] if sys.stdout.isatty() and not self.as_json else id


def line_of(letter: DeadLetter, style: Style) -> Line:
    origin = letter.origin
    cells = (
        style.id(letter.id),
        letter.state,
        origin.offset,
        letter.trace_id,
        letter.attempts,
        letter.category,
        scrub(letter.reason),
        url_shown(letter.value),
        place_of(letter),
        style.moment(letter.failed_ms),
    )
    more = {
        "stage": letter.stage,
        "topic": origin.topic,
        "partition": origin.partition,
        "key": _key_shown(letter.key),
        "cause": letter.fingerprint,
        "error": letter.error,
        "retry_count": max(0, letter.attempts - 1),
        "error_category": letter.category,
        "failed_ms": letter.failed_ms,
        "first_failed_ms": letter.first_failed_ms,
        "times_dead_lettered": letter.times_dead_lettered,
        "replay_number": letter.replay_number,
        "replay_id": letter.replay_id,
        "state_by": letter.state_by,
        "state_reason": letter.state_reason,
        "note": letter.note,
        "dlq_topic": letter.dlq_topic,
        "dlq_partition": letter.dlq_partition,
        "dlq_offset": letter.dlq_offset,
        "what_to_do": letter.what_to_do,
    }
    return Line(cells, more)


def filed_line(letter: FiledLetter, style: Style) -> Line:
    """A file tells less: it knows no id, no pipeline, and nothing of what came after."""
    record = letter.record
    cells = (
        None,
        None,
        record.offset,
        filed_trace_id(letter),
        letter.retry_count + 1,
        letter.error_type,
        scrub(letter.reason),
        url_shown(record.value),
        None,
        None if letter.failed_ms is None else style.moment(letter.failed_ms),
    )
    more = {
        "stage": None,
        "topic": record.topic,
        "partition": record.partition,
        "key": _key_shown(record.key),
        "error": letter.error_type,
        "retry_count": letter.retry_count,
        "error_category": letter.error_type,
        "failed_ms": letter.failed_ms,
        "processing_time_ms": letter.processing_ms,
    }
    return Line(cells, more)


def place_of(letter: DeadLetter) -> str:
    return f"{letter.pipeline}.{letter.stage}" if letter.pipeline else letter.stage


def url_shown(value: bytes | None) -> str | None:
    """The host, and a mark that tells two links apart without showing either."""
    found = _URL.search(value or b"")
    if found is None:
        return None
    host = urlsplit(found[0].decode("utf-8", "replace")).netloc.rpartition("@")[2]
    return f"{host} #{hashlib.sha256(found[0]).hexdigest()[:8]}"


def filed_trace_id(letter: FiledLetter) -> str | None:
    for name, content in letter.record.headers:
        if name == "trace_id" and content:
            return content.decode("utf-8", "replace")
    try:
        told = orjson.loads(letter.record.value or b"null")
    except orjson.JSONDecodeError:
        return None
    found = told.get("trace_id") if isinstance(told, dict) else None
    return found if isinstance(found, str) else None


def _key_shown(key: bytes | None) -> str | None:
    return None if key is None else scrub(one_line(key, _KEY_LENGTH_MAX))
