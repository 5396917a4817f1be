"""The simulated file host: `python -m forebay.simulator.file_host --folder DIR`.

What it does with a request stands in the request's path, so it needs to know nothing of events.
Its first line on stdout tells where it is; it ends by SIGTERM, SIGINT, or the end of stdin if told.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from forebay.simulator.answers import ANSWERS, Answer, Asked, Times, busy, expired, hang, missing
from forebay.simulator.answers import reset as reset_connection
from forebay.simulator.attempts import Attempts
from forebay.simulator.behaviours import FLAKY, SERVES, Behaviour, behaviour
from forebay.simulator.certificates import make_certificate
from forebay.simulator.endings import FileHostAddress
from forebay.simulator.validity import ends_at

_PATH = re.compile(r"/f/(?P<what>[a-z.0-9-]+)/(?P<seed>[^/-]+)-(?P<size>\d{1,12})/(?P<name>[^/]+)")
_WAYS_TO_FAIL: dict[str, Answer] = {"reset": reset_connection, "busy": busy, "hang": hang}
_SHUTDOWN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class FileHostSettings:
    """Port 0 is any free one."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    http_port: int = 0
    names: tuple[str, ...] = ("localhost",)
    times: Times = field(default_factory=Times)


@dataclass(frozen=True, slots=True)
class Place:
    https: FileHostAddress
    http: FileHostAddress
    control: FileHostAddress
    ca_file: Path

    def as_line(self) -> str:
        return json.dumps(
            {
                "https": str(self.https),
                "http": str(self.http),
                "host": self.https.host,
                "port": self.https.port,
                "http_port": self.http.port,
                "control": f"{self.control}/_control",
                "control_port": self.control.port,
                "ca_file": str(self.ca_file),
                "pid": os.getpid(),
            }
        )


@dataclass(frozen=True, slots=True)
class _Failing:
    until: float
    how: str


class FileHost:
    def __init__(self, settings: FileHostSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._attempts = Attempts()
        self._failing = _Failing(0.0, "reset")
        self._runners: list[web.ServerRunner] = []
        self.faults: Counter[str] = Counter()
        self.requests = 0

    async def start(self) -> Place:
        settings = self._settings
        certificate = await asyncio.to_thread(
            make_certificate, settings.folder, (settings.host, *settings.names)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        https_port = await self._listen(self._answer, (settings.host, settings.port), context)
        http_port = await self._listen(self._answer, (settings.host, settings.http_port))
        control_port = await self._listen(self._control, ("127.0.0.1", 0))
        return Place(
            https=FileHostAddress("https", settings.host, https_port),
            http=FileHostAddress("http", settings.host, http_port),
            control=FileHostAddress("http", "127.0.0.1", control_port),
            ca_file=certificate.certificate,
        )

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()

    async def __aenter__(self) -> Place:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def fail_for(self, seconds: float, how: str = "reset") -> None:
        """Every request fails until then; failures that a link prescribes count on meanwhile."""
        self._failing = _Failing(self._clock() + seconds, how)

    async def _listen(
        self,
        answer: Callable[[web.BaseRequest], Any],
        place: tuple[str, int],
        context: ssl.SSLContext | None = None,
    ) -> int:
        server = web.Server(answer, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, *place, ssl_context=context, backlog=1024)
        await site.start()
        return int(runner.addresses[-1][1])

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        path, _, query = request.raw_path.partition("?")
        asked = self._read(request, path)
        if self._clock() < self._failing.until:
            self.faults["outage"] += 1
            self._attempts.fails(path, asked.behaviour.number)
            return await _WAYS_TO_FAIL[self._failing.how](asked)
        end = ends_at(query) if query else None
        if end is not None and end < self._clock():
            self.faults["expired"] += 1
            return await expired(asked)
        return await self._behave(asked)

    async def _behave(self, asked: Asked) -> web.StreamResponse:
        name, number = asked.behaviour.name, asked.behaviour.number
        if name in FLAKY and not self._attempts.fails(asked.path, number):
            name = "ok"
        if name not in SERVES or name == "slow":
            self.faults[name] += 1
        try:
            return await ANSWERS.get(name, missing)(asked)
        except ConnectionResetError:
            return web.Response(status=500)  # the client has left: nobody reads it

    def _read(self, request: web.BaseRequest, path: str) -> Asked:
        found = _PATH.fullmatch(path)
        if found is None:
            return Asked(request, self._settings.times, Behaviour("missing"), path)
        return Asked(
            request,
            self._settings.times,
            behaviour(found["what"]),
            path,
            found["seed"],
            int(found["size"]),
            found["name"],
        )

    async def _control(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "GET", "/_control/faults":
                return web.json_response(self._standing())
            case "POST", "/_control":
                return self._obey(await request.read())
            case _:
                return _refusal(404, "There is POST /_control and GET /_control/faults.")

    def _obey(self, body: bytes) -> web.StreamResponse:
        try:
            order = json.loads(body)
            seconds, how = float(order["fail_for_seconds"]), str(order.get("how", "reset"))
        except (ValueError, TypeError, KeyError, AttributeError):
            return _refusal(400, 'Nothing changes. Write {"fail_for_seconds": 10}.')
        if how not in _WAYS_TO_FAIL or not 0 <= seconds <= 3600:
            ways = ", ".join(_WAYS_TO_FAIL)
            return _refusal(400, f'Nothing changes. Write 0 to 3600 seconds, and "how": {ways}.')
        self.fail_for(seconds, how)
        return web.json_response(self._standing())

    def _standing(self) -> dict[str, Any]:
        left = max(self._failing.until - self._clock(), 0.0)
        return {
            "faults": dict(self.faults),
            "requests": self.requests,
            "failing_for_seconds": round(left, 3),
        }


def _refusal(status: int, sentence: str) -> web.StreamResponse:
    return web.json_response({"error": sentence}, status=status)


async def run(settings: FileHostSettings, *, watch_stdin: bool) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if watch_stdin:
        # The end of a pipe tells that whoever started this process is gone, however it went.
        loop.add_reader(sys.stdin.fileno(), ended.set)
    async with FileHost(settings) as place:
        sys.stdout.write(place.as_line() + "\n")
        sys.stdout.flush()
        await ended.wait()


def settings_from(arguments: list[str] | None = None) -> tuple[FileHostSettings, bool]:
    parser = argparse.ArgumentParser("python -m forebay.simulator.file_host", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where its certificate goes")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="of https; 0 is any free one")
    parser.add_argument("--http-port", type=int, default=0, help="of plain http")
    parser.add_argument("--name", action="append", default=[], help="another name it goes by")
    parser.add_argument("--slow-seconds", type=float, default=2.0, help="of a slow answer")
    parser.add_argument("--hang-seconds", type=float, default=5.0, help="until it hangs up")
    parser.add_argument("--watch-stdin", action="store_true", help="end when stdin ends")
    given = parser.parse_args(arguments)
    settings = FileHostSettings(
        folder=given.folder,
        host=given.host,
        port=given.port,
        http_port=given.http_port,
        names=("localhost", *given.name),
        times=Times(slow_seconds=given.slow_seconds, hang_seconds=given.hang_seconds),
    )
    return settings, given.watch_stdin


if __name__ == "__main__":
    chosen, watches = settings_from()
    with suppress(KeyboardInterrupt):
        asyncio.run(run(chosen, watch_stdin=watches))
