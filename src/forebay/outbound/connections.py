"""The HTTP client as this room uses it: guarded, without proxies, cookies or decompression."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from forebay.core.errors import Unusable
from forebay.outbound.guard import Guard, GuardedResolver, Lookup
from forebay.outbound.rules import Target
from forebay.outbound.settings import ConnectionSettings

_READ_BUFFER_BYTES = 2**17


class Connections:
    """One pool of connections for each permission; opened when it is first asked for."""

    def __init__(self, settings: ConnectionSettings, lookup: Lookup | None = None) -> None:
        self._settings = settings
        self._lookup: Lookup = lookup or socket.getaddrinfo
        self._tls = _tls_context(settings)
        self._threads = ThreadPoolExecutor(settings.dns_threads, "forebay-dns")
        self._sessions: dict[bool, ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self.close()

    def session(self, *, allow_loopback: bool) -> ClientSession:
        """Only on the event loop."""
        session = self._sessions.get(allow_loopback)
        if session is None:
            session = self._sessions[allow_loopback] = self._open(allow_loopback=allow_loopback)
        return session

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _open(self, *, allow_loopback: bool) -> ClientSession:
        guard = Guard(allow_loopback=allow_loopback)
        connector = TCPConnector(
            limit=0,  # who calls bounds what is open at once
            resolver=GuardedResolver(guard, self._threads, self._lookup),
            socket_factory=guard.socket,
            ssl=self._tls,
            use_dns_cache=self._settings.dns_cache_seconds > 0,
            ttl_dns_cache=self._settings.dns_cache_seconds,
            keepalive_timeout=self._settings.keep_alive_seconds,
        )
        return ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            timeout=ClientTimeout(total=None, sock_connect=self._settings.connect_seconds),
            headers={"User-Agent": "forebay", "Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
            read_bufsize=_READ_BUFFER_BYTES,
        )


def url_of(target: Target) -> URL:
    """From the checked parts, so that nothing reads them otherwise; as written, for signatures."""
    return URL.build(
        scheme=target.scheme,
        host=f"[{target.host}]" if ":" in target.host else target.host,
        port=target.port,
        path=target.path,
        query_string=target.query,
        encoded=True,
    )


def _tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.ca_file is None:
        return context
    try:
        context.load_verify_locations(settings.ca_file)
    except (OSError, ssl.SSLError) as problem:
        raise Unusable(
            f"The certificates in {settings.ca_file} cannot be read ({problem}), so nothing is "
            f"downloaded. Set ca_file to a PEM file."
        ) from problem
    return context
