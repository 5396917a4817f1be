"""The result of each attachment: stored, refused, or dead."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from forebay.attachments.results import COMPLETED, ERROR_LENGTH_MAX, FAILED_PERMANENT
from forebay.core.clock import Clock
from forebay.core.envelope import read_envelope
from forebay.core.failures import Failure
from forebay.core.outcomes import Emit
from forebay.core.records import Record
from forebay.domains.xact.messages import CachedDownload, DownloadResult, DownloadTask

Message = TypeVar("Message", DownloadTask, CachedDownload)

_TASKS = TypeAdapter(DownloadTask)
_CACHED = TypeAdapter(CachedDownload)


def completed(cached: CachedDownload, name: str, retries: int, now: datetime) -> DownloadResult:
    return DownloadResult(
        trace_id=cached.trace_id,
        media_id=cached.media_id,
        attachment_url=cached.attachment_url,
        blob_path=name,
        status_subtype=cached.status_subtype,
        file_type=cached.file_type,
        assignment_id=cached.assignment_id,
        status=COMPLETED,
        http_status=200,
        bytes_downloaded=cached.bytes_downloaded,
        retry_count=retries,
        created_at=now,
        expires_at=_expires_at(cached.metadata),
        expired_at_ingest=cached.metadata.get("expired_at_ingest"),
        original_timestamp=cached.original_timestamp,
        content_sha256=cached.content_sha256,
    )


def refused(task: DownloadTask, reason: Exception, category: str, now: datetime) -> DownloadResult:
    """By a rule, before anything was tried."""
    return _failed(task, task.blob_path, Failure(category, str(reason)), _End(now))


@dataclass(frozen=True, slots=True)
class _End:
    at: datetime
    retries: int = 0
    took_ms: int | None = None


class FailedResults:
    """What is said of an attachment that became a dead letter; one for each kind of message."""

    def __init__(self, topic: str, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock

    def of_download(self, record: Record, failure: Failure) -> Emit:
        task = _read(_TASKS, record)
        if task is None:
            return {}
        return {self._topic: _failed(task, task.blob_path, failure, self._end(record))}

    def of_upload(self, record: Record, failure: Failure) -> Emit:
        cached = _read(_CACHED, record)
        if cached is None:
            return {}
        return {self._topic: _failed(cached, cached.destination_path, failure, self._end(record))}

    def _end(self, record: Record) -> _End:
        now = self._clock.now()
        envelope = read_envelope(record)
        since_ms = envelope.accepted_ms if envelope else record.timestamp_ms
        retries = envelope.attempt - 1 if envelope else 0
        took_ms = max(0, round(now * 1000) - since_ms)
        return _End(datetime.fromtimestamp(now, UTC), retries, took_ms)


def _failed(
    message: DownloadTask | CachedDownload, path: str, failure: Failure, end: _End
) -> DownloadResult:
    return DownloadResult(
        trace_id=message.trace_id,
        media_id=message.media_id,
        attachment_url=message.attachment_url,
        blob_path=path,
        status_subtype=message.status_subtype,
        file_type=message.file_type,
        assignment_id=message.assignment_id,
        status=FAILED_PERMANENT,
        retry_count=end.retries,
        error_message=failure.reason[:ERROR_LENGTH_MAX],
        error_category=failure.category,
        processing_time_ms=end.took_ms,
        created_at=end.at,
        expires_at=_expires_at(message.metadata),
        expired_at_ingest=message.metadata.get("expired_at_ingest"),
        original_timestamp=message.original_timestamp,
    )


def _expires_at(metadata: Mapping[str, Any]) -> datetime | None:
    written = metadata.get("expires_at")
    return datetime.fromisoformat(written) if isinstance(written, str) else None


def _read(adapter: TypeAdapter[Message], record: Record) -> Message | None:
    """None for what cannot be read: its dead letter says so, and no attachment is named."""
    try:
        return adapter.validate_json(record.value or b"")
    except ValidationError:
        return None
