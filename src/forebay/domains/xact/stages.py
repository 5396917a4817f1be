"""What each stage of xact does with one record: record in, outcome out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson

from forebay.attachments import download as downloading
from forebay.attachments import upload as uploading
from forebay.attachments.files import CachedFile, Link
from forebay.attachments.results import REFUSED
from forebay.attachments.upload import CacheLost
from forebay.core.outcomes import Done, Outcome, Reject, Skip
from forebay.core.records import Record
from forebay.domains.xact.messages import (
    CachedDownload,
    DownloadResult,
    DownloadTask,
    Event,
    domain_of,
    media_id,
    read_event,
)
from forebay.domains.xact.paths import BlobPath, destinations
from forebay.domains.xact.results import completed, refused
from forebay.domains.xact.settings import DOMAIN
from forebay.domains.xact.tools import Tools, tools_of
from forebay.engine.context import Context
from forebay.engine.handling import TRACE_HEADERS
from forebay.outbound.errors import UrlRefused
from forebay.outbound.expiry import expires_at
from forebay.outbound.rules import HostRules, check_url

CACHE_MISSES = "cache_misses"
CACHE_MISSES_MAX = 3
DOMAIN_HEADER = ("domain", DOMAIN.encode())
_TRACES = TRACE_HEADERS - {"domain"}


def make_download_tasks(record: Record, context: Context) -> Outcome:
    """A task for each link that may be followed; the others get their result at once."""
    tools = tools_of(context.shared)
    domain = domain_of(record)
    if domain != DOMAIN:
        return _of_another(domain, tools)
    event = read_event(record)
    if not event.attachments:
        return Skip("the event has no attachments")
    if not event.links_to_store:
        context.log("The event has attachments but no assignment id", trace_id=event.trace_id)
        return Skip("the event has attachments but no assignment id")
    links = _links_to_follow(event, context, tools)
    if not links:
        return Skip("a repeat: every link of the event was handled before")
    return Done(_tasks_and_refusals(record, event, links, tools))


async def download(task: DownloadTask, context: Context) -> Outcome:
    tools = tools_of(context.shared)
    file, _ = await downloading.download(Link(task.attachment_url), tools.downloading)
    context.log("Downloaded an attachment", trace_id=task.trace_id, size=file.size)
    return Done({tools.settings.topics.downloads_cached: _cached(task, file, _now(tools))})


async def upload(cached: CachedDownload, context: Context) -> Outcome:
    tools = tools_of(context.shared)
    file = CachedFile(
        tools.cache.file(cached.local_cache_path),
        cached.bytes_downloaded,
        cached.content_sha256,
        cached.content_type,
    )
    files = tools.files.of(cached.event_type)
    try:
        name = await uploading.upload(file, cached.destination_path, cached.attachment_url, files)
    except CacheLost as lost:
        return _download_again(cached, lost, tools)
    context.log("Stored an attachment", trace_id=cached.trace_id, size=cached.bytes_downloaded)
    result = completed(cached, name, context.attempt - 1, _now(tools))
    return Done({tools.settings.topics.downloads_results: result})


def mark_seen(records: Sequence[Record], shared: Mapping[str, Any]) -> None:
    """Only now: an event whose tasks were not acknowledged is no repeat when it comes again."""
    tools = tools_of(shared)
    tools.seen.mark(_links_followed(records, tools.downloading.strategy.rules))


def drop_cached(records: Sequence[Record], shared: Mapping[str, Any]) -> None:
    """Only now: until its result is acknowledged an upload may be made again."""
    cache = tools_of(shared).cache
    for record in records:
        cache.drop(orjson.loads(record.value or b"")["local_cache_path"])


def room_in_cache(shared: Mapping[str, Any]) -> str | None:
    return tools_of(shared).cache.why_it_waits()


def _of_another(domain: str, tools: Tools) -> Outcome:
    """A topic may carry several domains; each pipeline takes its own."""
    if domain in tools.settings.other_domains:
        return Skip(f"the event belongs to {domain}")
    return Reject(
        f"The event's domain header says {domain[:80]!r}, which nobody here knows. Mend its "
        f"sender, or declare the domain.",
        category="unknown_domain",
    )


def _links_to_follow(event: Event, context: Context, tools: Tools) -> Sequence[str]:
    """What comes back by our own doing is no repeat."""
    if context.attempt > 1 or context.is_replay:
        return event.attachments
    return tools.seen.unseen(event)


def _links_followed(records: Sequence[Record], rules: HostRules) -> Iterator[tuple[str, str]]:
    """Not what was refused: once the rules are mended its event may be sent again at once."""
    for record in records:
        event = read_event(record)
        for url in event.links_to_store:
            with suppress(UrlRefused):
                check_url(url, rules)
                yield event.trace_id, url


def _tasks_and_refusals(
    record: Record, event: Event, links: Sequence[str], tools: Tools
) -> dict[str, list[Record]]:
    topics, rules = tools.settings.topics, tools.downloading.strategy.rules
    tasks: list[Record] = []
    results: list[Record] = []
    wanted = set(links)
    for url, there in destinations(event).items():
        if url not in wanted:
            continue
        task = _task(event, url, there, tools)
        try:
            check_url(url, rules)
        except UrlRefused as refusal:
            results.append(_to_send(record, event, refused(task, refusal, REFUSED, _now(tools))))
        else:
            tasks.append(_to_send(record, event, task))
    emit = {topics.downloads_pending: tasks, topics.downloads_results: results}
    return {topic: records for topic, records in emit.items() if records}


def _task(event: Event, url: str, there: BlobPath, tools: Tools) -> DownloadTask:
    metadata: dict[str, Any] = {}
    expiry = expires_at(url)
    if expiry is not None:
        metadata["expires_at"] = datetime.fromtimestamp(expiry.at, UTC).isoformat()
        metadata["expired_at_ingest"] = expiry.at <= tools.clock.now()
    return DownloadTask(
        trace_id=event.trace_id,
        media_id=media_id(event.trace_id, url),
        attachment_url=url,
        blob_path=there.path,
        status_subtype=event.subtype,
        file_type=there.file_type,
        assignment_id=event.assignment_id or "",
        estimate_version=event.estimate_version,
        event_subtype=event.subtype,
        original_timestamp=event.at,
        metadata=metadata,
    )


def _to_send(source: Record, event: Event, message: DownloadTask | DownloadResult) -> Record:
    """Keyed by the trace id, whatever key the event came with."""
    traces = [header for header in source.headers if header[0] in _TRACES]
    return Record(orjson.dumps(message), event.trace_id.encode(), [*traces, DOMAIN_HEADER])


def _cached(task: DownloadTask, file: CachedFile, now: datetime) -> CachedDownload:
    return CachedDownload(
        trace_id=task.trace_id,
        media_id=task.media_id,
        attachment_url=task.attachment_url,
        destination_path=task.blob_path,
        local_cache_path=str(file.path),
        bytes_downloaded=file.size,
        content_sha256=file.sha256,
        content_type=file.content_type,
        event_subtype=task.event_subtype,
        status_subtype=task.status_subtype,
        file_type=task.file_type,
        assignment_id=task.assignment_id,
        original_timestamp=task.original_timestamp,
        downloaded_at=now,
        metadata={**task.metadata, "estimate_version": task.estimate_version},
    )


def _download_again(cached: CachedDownload, lost: CacheLost, tools: Tools) -> Outcome:
    misses = int(cached.metadata.get(CACHE_MISSES) or 0) + 1
    if misses > CACHE_MISSES_MAX:
        return Reject(
            f"The cached file was lost {misses} times. {lost} Look at the cache's folder, then "
            f"replay.",
            category="cache_lost",
        )
    task = DownloadTask(
        trace_id=cached.trace_id,
        media_id=cached.media_id,
        attachment_url=cached.attachment_url,
        blob_path=cached.destination_path,
        status_subtype=cached.status_subtype,
        file_type=cached.file_type,
        assignment_id=cached.assignment_id,
        estimate_version=cached.metadata.get("estimate_version"),
        event_subtype=cached.event_subtype,
        original_timestamp=cached.original_timestamp,
        metadata={**cached.metadata, CACHE_MISSES: misses},
    )
    return Done({tools.settings.topics.downloads_pending: task})


def _now(tools: Tools) -> datetime:
    return datetime.fromtimestamp(tools.clock.now(), UTC)
