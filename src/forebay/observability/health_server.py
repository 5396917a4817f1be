"""Answers probes over HTTP, on a thread of its own: it answers whatever the work is doing."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

import orjson

from forebay.core.errors import Unusable

FIRST_PORT = 8_000
PORTS_TRIED = 100
_LIVE = {"/health/live", "/live"}
_READY = {"/health/ready", "/ready"}


@dataclass(frozen=True, slots=True)
class Vitals:
    is_live: bool
    is_ready: bool
    body: Mapping[str, object]


class HealthServer:
    """`look` is called for every answer, on the server's threads. Port 0: the first free one."""

    def __init__(self, look: Callable[[], Vitals], port: int = 0, host: str = "127.0.0.1") -> None:
        self._server = _bound(look, port, host)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="health", daemon=True, args=(0.1,)
        )

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _bound(look: Callable[[], Vitals], port: int, host: str) -> ThreadingHTTPServer:
    tried = [port] if port else range(FIRST_PORT, FIRST_PORT + PORTS_TRIED)
    for number in tried:
        try:
            return _Server((host, number), _handler(look))
        except OSError:
            continue
    raise Unusable(
        f"Port {port or FIRST_PORT} of {host} is taken, so no probe could be answered. Choose "
        f"another with --health-port."
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False  # a port in use must be seen as such


def _handler(look: Callable[[], Vitals]) -> type[BaseHTTPRequestHandler]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].rstrip("/")
            vitals = look()
            if path in _LIVE:
                self._send(vitals.is_live, {"live": vitals.is_live})
            elif path in _READY:
                self._send(vitals.is_ready, vitals.body)
            elif path == "/health":
                self._send(vitals.is_live and vitals.is_ready, vitals.body)
            else:
                self.send_error(404)

        def _send(self, is_well: bool, body: Mapping[str, object]) -> None:  # noqa: FBT001  a verdict
            content = orjson.dumps(body)
            self.send_response(200 if is_well else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            """Probes are no events."""

    return Answer
