"""What travels between the stages of xact. Bodies keep the shape they always had."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import orjson

from forebay.core.envelope import read_envelope
from forebay.core.records import Record
from forebay.domains.xact.settings import DOMAIN
from forebay.engine.payloads import Undecodable
from forebay.engine.routes import AGAIN

_EVENTS = uuid.UUID("8f9c3c1e-5a34-5d0b-9a55-2f0f6c6f4e11")


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the raw topic."""

    trace_id: str
    type: str
    version: str
    at: datetime
    data: Mapping[str, Any]
    raw: Mapping[str, Any]
    given_id: str | None = None

    @property
    def subtype(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def day(self) -> date:
        return self.at.date()

    @property
    def event_id(self) -> str:
        return self.given_id or str(uuid.uuid5(_EVENTS, self.trace_id))

    @property
    def assignment_id(self) -> str | None:
        return _text(self.data.get("assignmentId"))

    @property
    def estimate_version(self) -> str | None:
        return _text(self.data.get("estimateVersion"))

    @property
    def attachments(self) -> tuple[str, ...]:
        """Each link once, in the order given; what is no link is left out."""
        given = self.data.get("attachments") or ()
        return tuple(dict.fromkeys(url for url in given if isinstance(url, str) and url.strip()))

    @property
    def links_to_store(self) -> tuple[str, ...]:
        """None without an assignment: nobody could find their files."""
        return () if self.assignment_id is None else self.attachments


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadTask:
    trace_id: str
    media_id: str
    attachment_url: str
    blob_path: str
    status_subtype: str
    file_type: str
    assignment_id: str
    estimate_version: str | None = None
    retry_count: int = 0
    event_type: str = "xact"
    event_subtype: str = ""
    original_timestamp: datetime
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedDownload:
    trace_id: str
    media_id: str
    attachment_url: str
    destination_path: str
    local_cache_path: str
    bytes_downloaded: int
    content_sha256: str
    content_type: str | None = None
    event_type: str = "xact"
    event_subtype: str = ""
    status_subtype: str
    file_type: str
    assignment_id: str
    original_timestamp: datetime
    downloaded_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadResult:
    """`created_at` is when it was decided; the day of its row is that of `original_timestamp`."""

    trace_id: str
    media_id: str
    attachment_url: str
    blob_path: str
    status_subtype: str
    file_type: str
    assignment_id: str
    status: str
    http_status: int | None = None
    bytes_downloaded: int = 0
    retry_count: int = 0
    error_message: str | None = None
    error_category: str | None = None
    processing_time_ms: int | None = None
    created_at: datetime
    expires_at: datetime | None = None
    expired_at_ingest: bool | None = None
    original_timestamp: datetime
    content_sha256: str | None = None


def read_event(record: Record) -> Event:
    """Raises Undecodable for what can never become an event."""
    raw = _object(record.value)
    trace_id = _first(raw, "traceId", "trace_id")
    if not isinstance(trace_id, str) or not trace_id.strip():
        raise Undecodable("The event has no trace id (traceId).")
    kind = _first(raw, "type", "event_type")
    if not isinstance(kind, str) or not kind.rpartition(".")[2].strip():
        raise Undecodable("The event has no type.")
    data = _data(raw.get("data"))
    given_id = _first(raw, "eventId", "event_id")
    return Event(
        trace_id=trace_id,
        type=kind,
        version=_text(raw.get("version")) or "1",
        at=_time(_first(raw, "utcDateTime", "timestamp"), _came_ms(record)),
        data=data,
        raw=raw,
        given_id=given_id if isinstance(given_id, str) and given_id else None,
    )


def domain_of(record: Record) -> str:
    """A record without the header belongs to the pipeline that reads it."""
    values = [value for name, value in record.headers if name == "domain" and value]
    return values[-1].decode(errors="replace") if values else DOMAIN


def media_id(trace_id: str, url: str) -> str:
    return str(uuid.uuid5(_EVENTS, trace_id + url))


def _came_ms(record: Record) -> int:
    """What comes back to us is written anew, and its envelope says when it first came.

    Elsewhere an envelope is a stranger's, and is not believed.
    """
    envelope = read_envelope(record) if record.topic.endswith(AGAIN) else None
    if envelope is None:
        return record.timestamp_ms
    return min(envelope.origin.timestamp_ms, record.timestamp_ms)


def _object(value: bytes | None) -> Mapping[str, Any]:
    try:
        parsed = orjson.loads(value or b"")
    except orjson.JSONDecodeError as problem:
        raise Undecodable(f"The event is no JSON: {problem}.") from problem
    if not isinstance(parsed, dict):
        raise Undecodable(f"The event is a JSON {type(parsed).__name__}, not an object.")
    return parsed


def _data(given: object) -> Mapping[str, Any]:
    """An object, or the same as text."""
    if given is None:
        return {}
    if isinstance(given, str):
        return _data(_object(given.encode()))
    if not isinstance(given, dict):
        raise Undecodable(f"The event's data is a {type(given).__name__}, not an object.")
    if not isinstance(given.get("attachments"), list | None):
        raise Undecodable("The event's attachments are no list.")
    return given


def _time(given: object, otherwise_ms: int) -> datetime:
    """An event without a time happened when it came."""
    if given is None:
        return datetime.fromtimestamp(max(otherwise_ms, 0) / 1000, UTC)
    try:
        found = datetime.fromisoformat(str(given))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError) as problem:
        raise Undecodable("The event's time (utcDateTime) is no ISO-8601 date.") from problem


def _first(raw: Mapping[str, Any], *names: str) -> object:
    """Older sources spell some names otherwise."""
    return next((raw[name] for name in names if raw.get(name) is not None), None)


def _text(given: object) -> str | None:
    """Numbers where text is meant are taken as text."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    return str(given).strip() or None
