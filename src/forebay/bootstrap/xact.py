"""The xact pipeline with all that its stages work with."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from forebay.attachments.cache import PART_SECONDS, Cache
from forebay.attachments.download import DownloadTools
from forebay.bootstrap.files import open_file_routes
from forebay.bootstrap.seen import seen_file
from forebay.bootstrap.state import LazyState
from forebay.bootstrap.sweeping import Sweeps
from forebay.core.clock import Clock
from forebay.domains.xact.pipeline import xact_pipeline
from forebay.domains.xact.seen import SeenEvents
from forebay.domains.xact.settings import DOMAIN
from forebay.domains.xact.strategy import XactStrategy
from forebay.domains.xact.tools import Tools
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import MONTH_MS
from forebay.observability.catalogue import Emit
from forebay.observability.clock import SystemClock
from forebay.outbound.downloads import Downloads
from forebay.outbound.settings import EXTERNAL_DOWNLOAD, ConnectionSettings, DownloadSettings
from forebay.settings import Settings
from forebay.state.seen import SeenTable

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
        sweeps = Sweeps(clock, emit)
        cache = Cache(
            settings.storage.cache_folder,
            settings.storage.cache_bytes_max,
            lambda cache: sweeps.begin(lambda now: cache.sweep(now, KEEP_CACHED_SECONDS)),
        )
        files = open_file_routes(
            settings,
            emit,
            DOMAIN,
            opened=lambda place: sweeps.begin(lambda now: place.sweep(now - PART_SECONDS)),
        )
        closing.push_async_callback(files.close)
        closing.callback(sweeps.end)
        seen = LazyState(seen_file(settings), closing)
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
