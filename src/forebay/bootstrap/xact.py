"""The xact pipeline with all that its stages work with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from forebay.attachments.cache import PART_SECONDS, Cache
from forebay.attachments.download import DownloadTools
from forebay.bootstrap.files import open_file_routes
from forebay.bootstrap.state import LazyState
from forebay.core.clock import Clock
from forebay.core.errors import ForebayError
from forebay.domains.xact.pipeline import xact_pipeline
from forebay.domains.xact.seen import SeenEvents
from forebay.domains.xact.settings import DOMAIN
from forebay.domains.xact.strategy import XactStrategy
from forebay.domains.xact.tools import Tools
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import MONTH_MS
from forebay.lakehouse.files.port import Files
from forebay.observability.catalogue import Emit
from forebay.observability.clock import SystemClock
from forebay.outbound.downloads import Downloads
from forebay.outbound.settings import EXTERNAL_DOWNLOAD, ConnectionSettings, DownloadSettings
from forebay.settings import Settings
from forebay.state.seen import SeenTable

SWEEP_EVERY_SECONDS = 3_600.0
KEEP_CACHED_SECONDS = MONTH_MS / 1000


def open_xact(settings: Settings, emit: Emit) -> Pipeline:
    clock = SystemClock()
    return xact_pipeline(settings.xact, lambda: _tools(settings, clock, emit), clock)


@asynccontextmanager
async def _tools(settings: Settings, clock: Clock, emit: Emit) -> AsyncIterator[Tools]:
    chosen = settings.xact
    async with AsyncExitStack() as closing:
        downloads = await closing.enter_async_context(
            Downloads(_download_settings(settings), clock, emit)
        )
        cache = Cache(settings.storage.cache_folder, settings.storage.cache_bytes_max)
        files = open_file_routes(settings, emit, DOMAIN)
        closing.push_async_callback(files.close)
        seen = LazyState(settings.folder / "seen.db", closing)
        sweeping = asyncio.create_task(_sweep(cache, files.of(DOMAIN), clock, emit))
        closing.callback(sweeping.cancel)
        yield Tools(
            settings=chosen,
            downloading=DownloadTools(downloads, cache, XactStrategy(chosen), clock),
            files=files,
            cache=cache,
            seen=SeenEvents(
                lambda: SeenTable(seen.open()), chosen.seen_window_seconds, clock, emit
            ),
            clock=clock,
        )


def _download_settings(settings: Settings) -> DownloadSettings:
    chosen = settings.xact
    return DownloadSettings(
        concurrency=chosen.download_concurrency,
        total_seconds=chosen.download_seconds,
        file_bytes_max=settings.file_bytes_max,
        breaker=replace(EXTERNAL_DOWNLOAD, open_seconds=settings.circuit_open_seconds),
        connections=ConnectionSettings(ca_file=settings.tls_ca_file),
    )


async def _sweep(cache: Cache, files: Files, clock: Clock, emit: Emit) -> None:
    """Of what crashes left behind, as long as the process lives."""
    while True:
        try:
            await asyncio.to_thread(cache.sweep, clock.now(), KEEP_CACHED_SECONDS)
            await asyncio.to_thread(files.sweep, clock.now() - PART_SECONDS)
        except (ForebayError, OSError) as error:
            emit("sweep.failed", error_message=str(error))
        await asyncio.sleep(SWEEP_EVERY_SECONDS)
