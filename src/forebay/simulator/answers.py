"""What the file host answers, one function for each behaviour."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aiohttp import web

from forebay.simulator.behaviours import Behaviour
from forebay.simulator.content import PIECE_BYTES, content, media_type, pieces
from forebay.simulator.links import extension

DECLARED_HUGE_BYTES = 50 * 2**30
ENDLESS_BYTES = 4 * 2**30
LARGEST_IN_ONE_PIECE = 2**20

_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head>"
    b"<body><h1>Your session has ended</h1></body></html>\n"
)
_PROGRAM = b"MZ\x90\x00\x03\x00\x00\x00\x04\x00\x00\x00\xff\xff\x00\x00" + bytes(1000)
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>'


@dataclass(frozen=True, slots=True)
class Times:
    """How long the slow answers take."""

    slow_seconds: float = 2.0
    hang_seconds: float = 5.0
    never_seconds: float = 600.0
    crawl_every_seconds: float = 0.2


@dataclass(frozen=True, slots=True)
class Asked:
    request: web.BaseRequest
    times: Times
    behaviour: Behaviour
    path: str
    seed: str = ""
    size: int = 0
    name: str = ""

    @property
    def extension(self) -> str:
        return extension(self.name)

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": media_type(self.extension), "ETag": f'"{self.seed}-{self.size}"'}

    def whole(self) -> bytes:
        return content(self.seed, self.size, self.extension)


Answer = Callable[[Asked], Awaitable[web.StreamResponse]]


async def serve(asked: Asked) -> web.StreamResponse:
    if asked.size <= LARGEST_IN_ONE_PIECE:
        return web.Response(body=asked.whole(), headers=asked.headers)
    response = await _begin(asked, declared=asked.size)
    for piece in pieces(asked.seed, asked.size, asked.extension):
        await response.write(piece)
    return response


async def _slow(asked: Asked) -> web.StreamResponse:
    whole = asked.whole()
    response = await _begin(asked, declared=len(whole))
    step = len(whole) // 10 + 1
    for start in range(0, len(whole), step):
        await response.write(whole[start : start + step])
        await asyncio.sleep(asked.times.slow_seconds / 10)
    return response


async def _octet_stream(asked: Asked) -> web.StreamResponse:
    return web.Response(body=asked.whole(), content_type="application/octet-stream")


async def _mislabelled(asked: Asked) -> web.StreamResponse:
    return web.Response(body=asked.whole(), content_type="text/plain")


async def busy(_asked: Asked) -> web.StreamResponse:
    return web.Response(status=503, text="Slow Down", headers={"Retry-After": "1"})


async def _throttled(_asked: Asked) -> web.StreamResponse:
    return web.Response(status=429, text="Too Many Requests", headers={"Retry-After": "1"})


async def _error(_asked: Asked) -> web.StreamResponse:
    return _xml_error(500, "InternalError", "We encountered an internal error.")


async def reset(asked: Asked) -> web.StreamResponse:
    _abort(asked)
    return web.Response(status=500)


async def hang(asked: Asked) -> web.StreamResponse:
    await asyncio.sleep(asked.times.hang_seconds)
    return await reset(asked)


async def _never(asked: Asked) -> web.StreamResponse:
    await asyncio.sleep(asked.times.never_seconds)
    return await reset(asked)


async def _cut(asked: Asked) -> web.StreamResponse:
    """An orderly end before the declared length."""
    whole = asked.whole()
    response = await _begin(asked, declared=len(whole))
    await response.write(whole[: len(whole) // 2])
    await response.write_eof()
    if asked.request.transport is not None:
        asked.request.transport.close()
    return response


async def _broken(asked: Asked) -> web.StreamResponse:
    whole = asked.whole()
    response = await _begin(asked, declared=len(whole))
    await response.write(whole[: len(whole) // 2])
    _abort(asked)
    return response


async def _crawl(asked: Asked) -> web.StreamResponse:
    response = await _begin(asked, declared=asked.size)
    for byte in asked.whole():
        await response.write(bytes((byte,)))
        await asyncio.sleep(asked.times.crawl_every_seconds)
    return response


async def _empty(asked: Asked) -> web.StreamResponse:
    return web.Response(body=b"", headers=asked.headers)


async def _html(_asked: Asked) -> web.StreamResponse:
    return web.Response(body=_PAGE, content_type="text/html")


async def _disguised(asked: Asked) -> web.StreamResponse:
    return web.Response(body=_PAGE, headers=asked.headers)


async def _program(asked: Asked) -> web.StreamResponse:
    return web.Response(body=_PROGRAM, headers=asked.headers)


async def _encoded(asked: Asked) -> web.StreamResponse:
    """Compressed although nobody asked for it."""
    headers = asked.headers | {"Content-Encoding": "gzip"}
    return web.Response(body=gzip.compress(asked.whole()), headers=headers)


async def _huge(asked: Asked) -> web.StreamResponse:
    """Declares 50 GiB, and sends for as long as it is listened to."""
    return await _endless_body(asked, await _begin(asked, declared=DECLARED_HUGE_BYTES))


async def _endless(asked: Asked) -> web.StreamResponse:
    return await _endless_body(asked, await _begin(asked, declared=None))


async def _endless_body(asked: Asked, response: web.StreamResponse) -> web.StreamResponse:
    first = content(asked.seed, PIECE_BYTES, asked.extension)
    for _ in range(ENDLESS_BYTES // PIECE_BYTES):
        transport = asked.request.transport
        if transport is None or transport.is_closing():  # nobody listens any more
            return response
        await response.write(first)
        await asyncio.sleep(0)
    _abort(asked)
    return response


async def expired(_asked: Asked) -> web.StreamResponse:
    return _xml_error(403, "AccessDenied", "Request has expired")


async def _denied(_asked: Asked) -> web.StreamResponse:
    return _xml_error(403, "AccessDenied", "Access Denied")


async def missing(_asked: Asked) -> web.StreamResponse:
    return _xml_error(404, "NoSuchKey", "The specified key does not exist.")


async def _gone(_asked: Asked) -> web.StreamResponse:
    return _xml_error(410, "Gone", "The resource is gone.")


# Behind `//` the scheme stays; the last names no network place at all.
_DENIED_TARGETS = (
    "//169.254.169.254/latest/meta-data/",
    "//2852039166/",
    "//0xa9fea9fe/",
    "//10.0.0.1/",
    "file:///etc/passwd",
)


async def _redirect_denied(asked: Asked) -> web.StreamResponse:
    return _redirect(_DENIED_TARGETS[(asked.behaviour.number - 1) % len(_DENIED_TARGETS)])


async def _redirect_loop(asked: Asked) -> web.StreamResponse:
    return _redirect(asked.path)


async def _redirect_ok(asked: Asked) -> web.StreamResponse:
    return _redirect(f"/f/ok/{asked.seed}-{asked.size}/{asked.name}")


def _redirect(location: str) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": location})


def _xml_error(status: int, code: str, message: str) -> web.StreamResponse:
    return web.Response(
        status=status, text=_XML.format(code, message), content_type="application/xml"
    )


async def _begin(asked: Asked, declared: int | None) -> web.StreamResponse:
    response = web.StreamResponse(headers=asked.headers)
    response.content_length = declared
    await response.prepare(asked.request)
    return response


def _abort(asked: Asked) -> None:
    if asked.request.transport is not None:
        asked.request.transport.abort()


ANSWERS: Mapping[str, Answer] = MappingProxyType(
    {
        "ok": serve,
        "slow": _slow,
        "octet": _octet_stream,
        "mislabelled": _mislabelled,
        "busy": busy,
        "throttled": _throttled,
        "error": _error,
        "reset": reset,
        "hang": hang,
        "never": _never,
        "cut": _cut,
        "broken": _broken,
        "crawl": _crawl,
        "empty": _empty,
        "html": _html,
        "disguised": _disguised,
        "program": _program,
        "encoded": _encoded,
        "huge": _huge,
        "endless": _endless,
        "expired": expired,
        "denied": _denied,
        "missing": missing,
        "gone": _gone,
        "redirect-denied": _redirect_denied,
        "redirect-loop": _redirect_loop,
        "redirect-ok": _redirect_ok,
    }
)
