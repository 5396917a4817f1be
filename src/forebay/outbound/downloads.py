"""Fetches a link into a file: guarded, bounded in size and time, whole or not at all."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import ClientResponse, ClientTimeout

from forebay.core.clock import Clock
from forebay.observability.catalogue import Emit
from forebay.outbound.answers import BODY_BYTES_MAX, Said, refusal, retry_after_seconds
from forebay.outbound.circuits import Circuits
from forebay.outbound.connections import Connections, url_of
from forebay.outbound.errors import DownloadFailed, UrlRefused, ending, link
from forebay.outbound.expiry import is_expired
from forebay.outbound.faults import CLIENT_ERRORS, failure_of
from forebay.outbound.file_types import (
    HEAD_BYTES,
    check_content_type,
    check_extension,
    check_head,
    check_tail,
    extension_of,
)
from forebay.outbound.guard import Lookup
from forebay.outbound.pace import Pace
from forebay.outbound.part_file import PartFile
from forebay.outbound.redirects import REDIRECTS, Hop, Redirect, next_hop, too_many
from forebay.outbound.rules import HostRules, check_url
from forebay.outbound.settings import DownloadSettings

CLOCK_SKEW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Downloaded:
    """`is_length_verified` is False where the server did not say how long the file is."""

    path: Path
    bytes: int
    sha256: str
    content_type: str | None
    seconds: float
    http_status: int
    is_length_verified: bool


@dataclass(frozen=True, slots=True)
class Errand:
    """What one download is about. `begun_at` on the clock, `deadline` on the event loop's."""

    url: str
    into: Path
    rules: HostRules
    extension: str
    begun_at: float
    deadline: float


class Downloads:
    """Used on one event loop. More than `concurrency` at once wait for their turn."""

    def __init__(
        self,
        settings: DownloadSettings,
        clock: Clock,
        emit: Emit,
        lookup: Lookup | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._connections = Connections(settings.connections, lookup)
        self._circuits = Circuits(settings.breaker, clock, emit, DownloadFailed)
        self._places = asyncio.Semaphore(settings.concurrency)
        self._timeout = ClientTimeout(
            total=None,
            sock_connect=settings.connections.connect_seconds,
            sock_read=settings.rate_window_seconds,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self._connections.close()

    async def fetch(self, url: str, into: Path, rules: HostRules) -> Downloaded:
        """Raises DownloadFailed, or Unavailable for the folder; then nothing is left behind."""
        target = check_url(url, rules)
        _refuse_expired(url, target.host, self._clock.now())
        extension = extension_of(url)
        check_extension(extension, rules)
        async with self._places:
            deadline = asyncio.get_running_loop().time() + self._settings.total_seconds
            begun_at = self._clock.monotonic()
            errand = Errand(url, into, rules, extension, begun_at, deadline)
            return await self._follow(errand, Hop(url, target))

    async def _follow(self, errand: Errand, hop: Hop) -> Downloaded:
        rules = errand.rules
        for _ in range(rules.redirects_max + 1):
            found = await self._ask(errand, hop)
            if isinstance(found, Downloaded):
                return found
            hop = next_hop(errand.url, hop, found, rules)
        raise too_many(hop.target.host, rules.redirects_max)

    async def _ask(self, errand: Errand, hop: Hop) -> Downloaded | Redirect:
        host = hop.target.host
        self._circuits.check(host)
        try:
            async with asyncio.timeout_at(errand.deadline):
                found = await self._exchange(errand, hop)
        except DownloadFailed as failure:
            self._circuits.failed(host, failure)
            raise
        except CLIENT_ERRORS as error:
            told = failure_of(error, host, DownloadFailed)
            self._circuits.failed(host, told)
            raise told from None
        self._circuits.succeeded(host)
        return found

    async def _exchange(self, errand: Errand, hop: Hop) -> Downloaded | Redirect:
        session = self._connections.session(allow_loopback=errand.rules.allow_loopback)
        async with asyncio.timeout(self._settings.head_seconds):
            response = await session.get(
                url_of(hop.target), allow_redirects=False, timeout=self._timeout
            )
        async with response:
            if response.status in REDIRECTS:
                return Redirect(response.status, response.headers.get("Location"))
            if response.status != 200:
                raise refusal(await self._said(hop.target.host, response), DownloadFailed)
            self._check_headers(errand, response)
            return await self._store(errand, response)

    async def _said(self, host: str, response: ClientResponse) -> Said:
        body = await response.content.read(BODY_BYTES_MAX)
        wait = retry_after_seconds(response.headers.get("Retry-After"), self._clock.now())
        return Said(host, response.status, body, wait)

    def _check_headers(self, errand: Errand, response: ClientResponse) -> None:
        headers = response.headers
        encoding = headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in {"identity", ""}:
            raise DownloadFailed(
                "encoded_body",
                f"The server packed the file ({encoding[:20]}), though it was asked not to; it is "
                f"never unpacked here. {ending('encoded_body')}",
            )
        check_content_type(headers.get("Content-Type", ""), errand.extension, errand.rules)
        if (response.content_length or 0) > self._settings.file_bytes_max:
            raise self._too_large()

    async def _store(self, errand: Errand, response: ClientResponse) -> Downloaded:
        with PartFile(errand.into) as part:
            await self._stream(errand, response, part)
            declared = response.content_length
            _check_whole(part, declared)
            check_tail(part.tail, part.head)
            sha256 = part.publish()
        return Downloaded(
            path=errand.into,
            bytes=part.bytes,
            sha256=sha256,
            content_type=response.headers.get("Content-Type"),
            seconds=self._clock.monotonic() - errand.begun_at,
            http_status=response.status,
            is_length_verified=declared is not None,
        )

    async def _stream(self, errand: Errand, response: ClientResponse, part: PartFile) -> None:
        settings = self._settings
        monotonic = self._clock.monotonic
        pace = Pace(settings.rate_window_seconds, settings.rate_bytes_min, monotonic())
        is_judged = False
        async for chunk in response.content.iter_any():
            part.write(chunk)
            if part.bytes > settings.file_bytes_max:
                raise self._too_large()
            if pace.is_too_slow(len(chunk), monotonic()):
                raise _too_slow(settings)
            if not is_judged and len(part.head) == HEAD_BYTES:
                check_head(part.head, errand.extension, errand.rules)
                is_judged = True
        if part.bytes and not is_judged:
            check_head(part.head, errand.extension, errand.rules)

    def _too_large(self) -> DownloadFailed:
        return DownloadFailed(
            "too_large",
            f"The file is larger than {self._settings.file_bytes_max} bytes, which is the most "
            f"that is taken. It is not tried again; raise file_bytes_max if it is wanted, then "
            f"replay.",
        )


def _refuse_expired(url: str, host: str, now: float) -> None:
    """Clocks differ: a link that has expired a moment ago is left to its server."""
    if is_expired(url, now - CLOCK_SKEW_SECONDS):
        raise UrlRefused(
            "expired",
            f"The {link(url)} to {host} has expired by its own signature and was not asked for. "
            f"It is not tried again; a fresh link is needed.",
        )


def _check_whole(part: PartFile, declared: int | None) -> None:
    if declared is not None and part.bytes != declared:
        raise DownloadFailed(
            "truncated",
            f"{part.bytes} bytes arrived of a file of {declared}. {ending('truncated')}",
        )
    if part.bytes == 0:
        raise DownloadFailed(
            "empty_file", f"The server sent a file without content. {ending('empty_file')}"
        )


def _too_slow(settings: DownloadSettings) -> DownloadFailed:
    return DownloadFailed(
        "too_slow",
        f"Fewer than {settings.rate_bytes_min} bytes a second arrived for "
        f"{settings.rate_window_seconds:g} s. {ending('too_slow')}",
    )
