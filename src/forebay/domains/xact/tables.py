"""The three tables of xact, as their columns have always been, and the row of each record."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import orjson

from forebay.attachments.results import COMPLETED, FAILED_PERMANENT, status_of
from forebay.core.outcomes import Skip
from forebay.core.records import Record
from forebay.domains.xact.messages import DownloadResult, Event, domain_of, read_event
from forebay.domains.xact.settings import DOMAIN

EVENTS = "xact_events"
ATTACHMENTS = "xact_attachments"
FAILED = "xact_attachments_failed"

_each = dict.fromkeys
EVENT_COLUMNS: Mapping[str, type] = {
    **_each(("type", "status_subtype", "version", "trace_id", "event_id"), str),
    "ingested_at": datetime,
    "event_date": date,
    **_each(("description", "assignment_id", "original_assignment_id", "xn_address"), str),
    **_each(("carrier_id", "estimate_version", "note", "author"), str),
    **_each(("sender_reviewer_name", "sender_reviewer_email"), str),
    **_each(("carrier_reviewer_name", "carrier_reviewer_email"), str),
    **_each(("event_datetime_mdt", "attachments", "claim_number"), str),
    **_each(("contact_type", "contact_name", "contact_phone_type"), str),
    **_each(("contact_phone_number", "contact_phone_extension"), str),
    **_each(("contact_email_address", "raw_json"), str),
}
EVENT_KEY = ("trace_id", "attachments")

ATTACHMENT_COLUMNS: Mapping[str, type] = {
    **_each(("trace_id", "attachment_url", "blob_path", "status_subtype"), str),
    **_each(("file_type", "assignment_id", "status"), str),
    **_each(("http_status", "bytes_downloaded", "retry_count"), int),
    "error_message": str,
    **_each(("created_at", "expires_at"), datetime),
    "expired_at_ingest": bool,
    "event_date": date,
    "content_sha256": str,
}
FAILED_COLUMNS: Mapping[str, type] = {
    **_each(("trace_id", "attachment_url", "error_message", "error_category"), str),
    **_each(("failed_at", "created_at"), datetime),
    "processing_time_ms": int,
    "created_date": date,
}
ATTACHMENT_KEY = ("trace_id", "attachment_url")


def event_row(record: Record) -> Mapping[str, Any] | Skip:
    domain = domain_of(record)
    if domain != DOMAIN:
        return Skip(f"it belongs to {domain}")
    event = read_event(record)
    data = event.data
    return {
        "type": event.type,
        "status_subtype": event.subtype,
        "version": event.version,
        "trace_id": event.trace_id,
        "event_id": event.event_id,
        "ingested_at": event.at,
        "event_date": event.day,
        "description": _text(data.get("description")),
        "assignment_id": event.assignment_id,
        "original_assignment_id": _text(data.get("originalAssignmentId")),
        "xn_address": _text(data.get("xnAddress")),
        "carrier_id": _text(data.get("carrierId")),
        "estimate_version": event.estimate_version,
        "note": _text(data.get("note")),
        "author": _text(data.get("author")),
        "sender_reviewer_name": _text(data.get("senderReviewerName")),
        "sender_reviewer_email": _text(data.get("senderReviewerEmail")),
        "carrier_reviewer_name": _text(data.get("carrierReviewerName")),
        "carrier_reviewer_email": _text(data.get("carrierReviewerEmail")),
        "event_datetime_mdt": _text(data.get("dateTime")),
        "attachments": ",".join(event.attachments) or None,
        "claim_number": _text(_inside(data, "adm", "coverageLoss", "claimNumber")),
        **_contact(event),
        "raw_json": orjson.dumps(event.raw).decode(),
    }


def stored_row(result: DownloadResult) -> Mapping[str, Any] | Skip:
    if status_of(result.status) != COMPLETED:
        return Skip("it was not stored")
    return {
        "trace_id": result.trace_id,
        "attachment_url": result.attachment_url,
        "blob_path": result.blob_path,
        "status_subtype": result.status_subtype,
        "file_type": result.file_type,
        "assignment_id": result.assignment_id,
        "status": COMPLETED,
        "http_status": result.http_status,
        "bytes_downloaded": result.bytes_downloaded,
        "retry_count": result.retry_count,
        "error_message": result.error_message,
        "created_at": result.created_at,
        "expires_at": result.expires_at,
        "expired_at_ingest": result.expired_at_ingest,
        "event_date": _day(result),
        "content_sha256": result.content_sha256,
    }


def failed_row(result: DownloadResult) -> Mapping[str, Any] | Skip:
    if status_of(result.status) != FAILED_PERMANENT:
        return Skip("it did not fail for good")
    return {
        "trace_id": result.trace_id,
        "attachment_url": result.attachment_url,
        "error_message": result.error_message,
        "error_category": result.error_category,
        "failed_at": result.created_at,
        "created_at": result.created_at,
        "processing_time_ms": result.processing_time_ms,
        "created_date": _day(result),
    }


def _day(result: DownloadResult) -> date:
    """Of the event, so that a task that is handled again tomorrow meets its row."""
    return result.original_timestamp.astimezone(UTC).date()


def _contact(event: Event) -> Mapping[str, str | None]:
    contact = event.data.get("contact")
    phone = _inside(contact, "contactMethods", "phone")
    return {
        "contact_type": _text(_inside(contact, "type")),
        "contact_name": _text(_inside(contact, "name")),
        "contact_phone_type": _text(_inside(phone, "type")),
        "contact_phone_number": _text(_inside(phone, "number")),
        "contact_phone_extension": _text(_inside(phone, "extension")),
        "contact_email_address": _text(_inside(contact, "contactMethods", "email", "address")),
    }


def _inside(given: object, *names: str) -> object:
    for name in names:
        given = given.get(name) if isinstance(given, dict) else None
    return given


def _text(given: object) -> str | None:
    """What is no text in a column of text is kept as it was written."""
    if given is None or isinstance(given, str):
        return given
    return orjson.dumps(given).decode()
