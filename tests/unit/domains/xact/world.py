"""xact in one thread: a memory broker, a folder for files, and a host that answers as told."""

import asyncio
import hashlib
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from forebay import testing
from forebay.attachments.cache import Cache
from forebay.attachments.download import DownloadTools
from forebay.bootstrap import open_database
from forebay.core.retries import RetryPolicy
from forebay.domains.xact.pipeline import xact_pipeline
from forebay.domains.xact.seen import SeenEvents
from forebay.domains.xact.settings import XactSettings
from forebay.domains.xact.strategy import XactStrategy
from forebay.domains.xact.tools import Tools
from forebay.lakehouse.files.local.files import LocalFiles
from forebay.lakehouse.files.routing import FileRoutes
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.outbound.downloads import Downloaded
from forebay.outbound.rules import HostRules, check_url
from forebay.state.seen import SeenTable

SETTINGS = XactSettings(
    allowed_hosts=("files.example",), retry=RetryPolicy((1.0, 2.0, 4.0, 8.0), in_place=0)
)


@dataclass
class Host:
    """Gives each link its own content. `answers` are what a link gets first, in turn."""

    answers: dict[str, list[Exception]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def fetch(self, url: str, into: Path, rules: HostRules) -> Downloaded:
        check_url(url, rules)
        self.asked.append(url)
        waiting = self.answers.get(url)
        if waiting:
            raise waiting.pop(0)
        content = content_of(url)
        await asyncio.to_thread(into.write_bytes, content)
        sha256 = hashlib.sha256(content).hexdigest()
        return Downloaded(into, len(content), sha256, "application/pdf", 0.1, 200, True)  # noqa: FBT003  as the room gives it


def content_of(url: str) -> bytes:
    return f"content of {url}".encode()


class World:
    """`run` is the pipeline, stepped by hand."""

    def __init__(self, folder: Path, settings: XactSettings, closing: ExitStack) -> None:
        self.folder, self.settings, self.host = folder, settings, Host()
        self.cache = Cache(folder / "cache", 10**9)
        self.clock = SystemClock()
        database = open_database(folder / "seen.db")
        closing.callback(database.close)
        self._seen = SeenTable(database)
        pipeline = xact_pipeline(settings, self._open, self.clock)
        self.run = closing.enter_context(testing.run(pipeline))

    @asynccontextmanager
    async def _open(self):
        settings, clock = self.settings, self.clock
        files = FileRoutes({"xact": LocalFiles(self.folder / "files")})
        strategy = XactStrategy(settings)
        seen = SeenEvents(lambda: self._seen, settings.seen_window_seconds, clock, silent)
        yield Tools(
            settings=settings,
            downloading=DownloadTools(self.host, self.cache, strategy, clock),
            files=files,
            cache=self.cache,
            seen=seen,
            clock=clock,
        )
        await files.close()

    def send(self, value: bytes, **more) -> None:
        self.run.send(self.settings.topics.events, value, **more)

    def file(self, path: str) -> bytes:
        return (self.folder / "files" / path).read_bytes()

    def cached(self) -> list[Path]:
        return [path for path in (self.folder / "cache").rglob("*") if path.is_file()]
