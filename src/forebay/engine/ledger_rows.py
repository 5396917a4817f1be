"""What a record of a dead-letter topic tells: one telling about one entry, and perhaps a letter."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from forebay.core.envelope import PREFIX, Envelope, Origin, entry_id, read_envelope
from forebay.core.failures import UNKNOWN, Failure
from forebay.core.markers import Marker, read_marker
from forebay.core.records import Record, pack_headers
from forebay.engine.letters import FOREIGN
from forebay.engine.standing import DEAD_LETTERED, Telling
from forebay.state.port import Value

LETTER_COLUMNS = (
    *("id", "consumer_group", "pipeline", "stage"),
    *("origin_topic", "origin_partition", "origin_offset", "origin_timestamp_ms"),
    *("dlq_topic", "dlq_partition", "dlq_offset", "trace_id"),
    *("category", "reason", "error", "stack", "fingerprint"),
    *("attempts", "accepted_ms", "failed_ms"),
    *("record_key", "record_value", "record_headers", "search_text"),
    *("letter_number", "letter_digest"),
)

_TRACE_HEADERS = ("trace_id", PREFIX + "trace")
_NOT_OURS = Failure(FOREIGN, "This record was not written by Forebay: its headers do not say why.")
_NUMBER_MAX = 2**63 - 1

LetterRow: TypeAlias = Mapping[str, Value]


class StageName(NamedTuple):
    pipeline: str
    stage: str


def read_record(
    record: Record, stages: Mapping[str, StageName]
) -> tuple[Telling, LetterRow | None]:
    """What a record tells, and the letter itself where it is one."""
    if (marker := read_marker(record)) is not None:
        return _marked(marker), None
    envelope = read_envelope(record)
    failure = _NOT_OURS
    if envelope is None:
        place = Origin(record.topic, record.partition, record.offset, record.timestamp_ms)
        envelope = Envelope(entry_id("", place), "", place, 0, accepted_ms=record.timestamp_ms)
    else:
        failure = envelope.failure or Failure(UNKNOWN, "The letter does not say why.")
    failed_ms = _within(envelope.failed_ms or record.timestamp_ms)
    name = stages.get(record.topic) or StageName("", record.topic)
    letter = _letter(record, envelope, failure, name, failed_ms)
    return _dead_lettered(envelope, failed_ms), letter


def search_pattern(text: str) -> str:
    """For `search_text LIKE ? ESCAPE '!'`."""
    escaped = text.casefold().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


def _marked(marker: Marker) -> Telling:
    return Telling(
        _plain(marker.id),
        marker.kind,
        _within(marker.replay_number),
        _plain(marker.replay_id),
        _within(marker.at_ms),
        _plain(marker.actor),
        _plain(marker.reason),
    )


def _dead_lettered(envelope: Envelope, failed_ms: int) -> Telling:
    return Telling(
        _plain(envelope.id),
        DEAD_LETTERED,
        envelope.replay_number,
        _plain(envelope.replay_id),
        failed_ms,
        reason=_plain(envelope.note),
        first_failed_ms=envelope.first_failed_ms or failed_ms,
        history=envelope.history,
    )


def _letter(
    record: Record, envelope: Envelope, failure: Failure, name: StageName, failed_ms: int
) -> LetterRow:
    origin, headers = envelope.origin, pack_headers(record.headers)
    reason = _plain(failure.reason)
    return {
        "id": _plain(envelope.id),
        "consumer_group": _plain(envelope.group),
        "pipeline": name.pipeline,
        "stage": name.stage,
        "origin_topic": _plain(origin.topic),
        "origin_partition": origin.partition,
        "origin_offset": origin.offset,
        "origin_timestamp_ms": _within(origin.timestamp_ms),
        "dlq_topic": record.topic,
        "dlq_partition": record.partition,
        "dlq_offset": record.offset,
        "trace_id": _trace_id(record),
        "category": _plain(failure.category),
        "reason": reason,
        "error": _plain(failure.error),
        "stack": _plain(failure.stack),
        "fingerprint": failure.fingerprint(name.stage),
        "attempts": envelope.attempt,
        "accepted_ms": envelope.accepted_ms,
        "failed_ms": failed_ms,
        "record_key": record.key,
        "record_value": record.value,
        "record_headers": headers,
        "search_text": _searchable(reason, record),
        "letter_number": envelope.replay_number,
        "letter_digest": _digest(record, headers),
    }


def _digest(record: Record, headers: bytes | None) -> str:
    """Tells apart what else could not be told apart, so that one of them always wins."""
    said = (record.topic, record.partition, record.offset, record.timestamp_ms)
    whole = repr((said, record.key, record.value, headers))
    return hashlib.sha256(whole.encode()).hexdigest()[:20]


def _searchable(reason: str, record: Record) -> str:
    texts = [(part or b"").decode("utf-8", "replace") for part in (record.key, record.value)]
    return _plain("\n".join((reason, *texts))).casefold()


def _trace_id(record: Record) -> str | None:
    found = dict(reversed([header for header in record.headers if header[1]]))
    for name in _TRACE_HEADERS:
        if value := found.get(name):
            return _plain(value.decode("utf-8", "replace"))
    return None


def _plain(text: str) -> str:
    """Not every database can keep a NUL in a text."""
    return text.replace("\0", " ")


def _within(number: int) -> int:
    """A forged number must not keep a whole batch from being stored."""
    return max(-_NUMBER_MAX, min(number, _NUMBER_MAX))
