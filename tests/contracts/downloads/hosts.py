"""File hosts on loopback that answer byte for byte what a test wants, and downloads from them."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.outbound.downloads import Downloaded, Downloads
from forebay.outbound.rules import HostRules
from forebay.outbound.settings import ConnectionSettings, DownloadSettings

HTTP = "http" + "://"
HTTPS = "https" + "://"
PDF = b"%PDF-1.7\n" + b"0 0 obj\n" * 400

Answer: TypeAlias = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


def case(number: int) -> pytest.MarkDecorator:
    """The number of the case in the suite of hostile downloads."""
    return pytest.mark.parametrize("case", [pytest.param(number, id=f"case-{number:02d}")])


@dataclass(frozen=True)
class Request:
    line: str
    headers: dict[str, str]

    @property
    def path(self) -> str:
        return self.line.split()[1]


@dataclass
class FileHost:
    """What it was asked, and how many connections it saw."""

    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/file.pdf", host: str = "127.0.0.1", scheme: str = HTTP) -> str:
        return f"{scheme}{host}:{self.port}{path}"


@asynccontextmanager
async def file_host(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[FileHost]:
    host = FileHost()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host.connections += 1
        try:
            while request := await _request(reader):
                host.requests.append(request)
                await answer(request, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    host.port = server.sockets[0].getsockname()[1]
    try:
        yield host
    finally:
        server.close()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.decode().rstrip().split("\r\n")
    pairs = (header.partition(": ") for header in rest)
    return Request(line, {name.lower(): value for name, _, value in pairs})


def says(*answers: bytes) -> Answer:
    """One after another, the last one again and again."""
    left = list(answers)

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(left.pop(0) if len(left) > 1 else left[0])

    return answer


def then_closes(answer: Answer) -> Answer:
    async def answer_and_close(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(request, writer)
        await writer.drain()
        writer.close()

    return answer_and_close


def reply(body: bytes = PDF, status: str = "200 OK", **headers: str) -> bytes:
    """A sound answer, unless a header given here says otherwise; None leaves one out."""
    told = {"Content-Type": "application/pdf", "Content-Length": str(len(body))}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items() if value is not None)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def redirect(location: str | None, status: str = "302 Found") -> bytes:
    return reply(b"", status, Location=location)


def knowing(**names: Sequence[str]) -> Callable[..., list[Any]]:
    """A resolver that knows these names alone; addresses of later calls come after a `|`."""
    asked: dict[str, int] = {}

    def lookup(host: str, port: int, *_: object) -> list[Any]:
        rounds = names.get(host.partition(".")[0])
        if rounds is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        turn = min(asked.get(host, 0), len(rounds) - 1)
        asked[host] = turn + 1
        return [_info(address, port) for address in rounds[turn].split()]

    return lookup


def _info(address: str, port: int) -> tuple[Any, ...]:
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))


def local_rules(**more: Any) -> HostRules:
    given = {
        "allowed": ("127.0.0.1", "localhost", ".example"),
        "schemes": ("https", "http"),
        "allow_loopback": True,
        "follow_redirect": lambda _original, _next: True,
    }
    return HostRules(**{**given, **more})


def quick(**more: Any) -> DownloadSettings:
    given = {"total_seconds": 10.0, "head_seconds": 5.0, "rate_window_seconds": 5.0}
    return DownloadSettings(**{**given, **more})


def trusting(ca_file: Path, **more: Any) -> DownloadSettings:
    return quick(connections=ConnectionSettings(ca_file=ca_file), **more)


async def until(is_true: Callable[[], object]) -> None:
    while not is_true():  # noqa: ASYNC110  a file tells nobody when it appears
        await asyncio.sleep(0)


@dataclass
class Place:
    """A folder, and what is fetched into it."""

    folder: Path
    settings: DownloadSettings = field(default_factory=quick)
    rules: HostRules = field(default_factory=local_rules)
    lookup: Any = None
    name: str = "file"

    @property
    def into(self) -> Path:
        return self.folder / self.name

    def downloads(self) -> Downloads:
        return Downloads(self.settings, SystemClock(), silent, self.lookup)

    def fetch(self, answer: Answer, path: str = "/file.pdf", **how: Any) -> Downloaded:
        """From a host that answers so. `host`: by which name; `tls`: its context."""
        tls, name = how.get("tls"), how.get("host", "127.0.0.1")

        async def run() -> Downloaded:
            async with file_host(answer, tls) as host, self.downloads() as downloads:
                self.host = host
                self._open_port(host, name)
                url = host.url(path, name, HTTPS if tls else HTTP)
                return await downloads.fetch(url, self.into, self.rules)

        return asyncio.run(run())

    def _open_port(self, host: FileHost, name: str) -> None:
        """Names other than loopback's need their port to be allowed."""
        if name.endswith(".example"):
            self.rules = local_rules(ports=(host.port,), follow_redirect=self.rules.follow_redirect)

    @property
    def left_behind(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())
