"""The xact job on one page: topics, stages, order, retries and tables."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from forebay.core.clock import Clock
from forebay.domains.xact import stages, tables
from forebay.domains.xact.results import FailedResults
from forebay.domains.xact.settings import DOMAIN, XactSettings, XactTopics
from forebay.domains.xact.tools import TOOLS, Tools
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import MONTH_MS, DeltaTable, RecordStage, SinkStage, Stage, Topic


def xact_pipeline(
    settings: XactSettings,
    open_tools: Callable[[], AbstractAsyncContextManager[Tools]],
    clock: Clock,
) -> Pipeline:
    pipeline = Pipeline(
        DOMAIN,
        group_prefix=settings.group_prefix,
        topics=topics_of(settings),
        stages=[*_record_stages(settings, clock), *_sink_stages(settings)],
        hosts=settings.allowed_hosts,
    )
    pipeline.shared[TOOLS] = open_tools
    return pipeline


def _record_stages(settings: XactSettings, clock: Clock) -> list[Stage]:
    topics, retry = settings.topics, settings.retry
    failed = FailedResults(topics.downloads_results, clock)
    return [
        RecordStage(
            name="event-ingester",
            reads=topics.events,
            run=stages.make_download_tasks,
            order_by="key",
            concurrency=1,
            inline=True,
            retry=retry,
            retry_topics=topics.events_retry,
            dead_letters=topics.events_dlq,
            when_done=stages.mark_seen,
        ),
        RecordStage(
            name="download",
            reads=topics.downloads_pending,
            run=stages.download,
            concurrency=settings.download_concurrency,
            timeout_seconds=(1 + retry.in_place) * settings.download_seconds + 60,
            retry=retry,
            retry_topics=topics.downloads_retry,
            dead_letters=topics.downloads_dlq,
            when_dead_lettered=failed.of_download,
            waits_for=stages.room_in_cache,
            sensitive=("attachment_url",),
        ),
        RecordStage(
            name="upload",
            reads=topics.downloads_cached,
            run=stages.upload,
            concurrency=settings.upload_concurrency,
            retry=retry,
            retry_topics=topics.uploads_retry,
            dead_letters=topics.uploads_dlq,
            when_dead_lettered=failed.of_upload,
            when_done=stages.drop_cached,
            sensitive=("attachment_url",),
        ),
    ]


def _sink_stages(settings: XactSettings) -> list[Stage]:
    if not settings.writes_tables:
        return []
    topics, batch = settings.topics, settings.batch
    sink = partial(SinkStage, keyed_by_record=True, batch=batch)
    return [
        sink(
            name="event-writer",
            reads=topics.events,
            row=tables.event_row,
            target=DeltaTable(
                tables.EVENTS, ("event_date",), "append_missing", settings.events_table
            ),
            columns=tables.EVENT_COLUMNS,
            key=tables.EVENT_KEY,
        ),
        sink(
            name="result-processor",
            reads=topics.downloads_results,
            row=tables.stored_row,
            target=DeltaTable(
                tables.ATTACHMENTS, ("event_date",), "append_missing", settings.attachments_table
            ),
            columns=tables.ATTACHMENT_COLUMNS,
            key=tables.ATTACHMENT_KEY,
        ),
        sink(
            name="failed-writer",
            reads=topics.downloads_results,
            row=tables.failed_row,
            target=DeltaTable(tables.FAILED, ("created_date",), "upsert", settings.failed_table),
            columns=tables.FAILED_COLUMNS,
            key=tables.ATTACHMENT_KEY,
        ),
    ]


def topics_of(settings: XactSettings) -> list[Topic]:
    names = settings.topics
    return [
        Topic(names.events, partitions=12, read_by_others=True),
        Topic(names.downloads_pending, partitions=12),
        Topic(names.downloads_cached, partitions=12),
        Topic(names.downloads_results, partitions=6),
        *_tiers(names, settings),
        *(
            Topic(name, partitions=3, retention_ms=MONTH_MS)
            for name in (names.events_dlq, names.downloads_dlq, names.uploads_dlq)
        ),
    ]


def _tiers(names: XactTopics, settings: XactSettings) -> list[Topic]:
    return [
        Topic(f"{stem}.{delay}", partitions=6)
        for stem in (names.events_retry, names.downloads_retry, names.uploads_retry)
        for delay in settings.retry.tiers
    ]
