"""`context.http`: requests of a user's functions, to the hosts that their pipeline lists."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import ClientResponse, ClientTimeout

from forebay.core.breaker import BreakerPolicy
from forebay.core.clock import Clock
from forebay.core.errors import InvalidRequest
from forebay.observability.catalogue import Emit
from forebay.outbound.answers import BODY_BYTES_MAX, Said, refusal, retry_after_seconds
from forebay.outbound.circuits import Circuits
from forebay.outbound.connections import Connections, url_of
from forebay.outbound.errors import RequestFailed, UrlRefused, ending
from forebay.outbound.faults import CLIENT_ERRORS, failure_of
from forebay.outbound.guard import Lookup
from forebay.outbound.listed_hosts import rules_of
from forebay.outbound.redirects import REDIRECTS, kind_of_refused
from forebay.outbound.rules import HostRules, Target, check_url
from forebay.outbound.settings import ConnectionSettings

_JSON = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(frozen=True, slots=True)
class HttpSettings:
    total_seconds: float = 30.0
    body_bytes_max: int = 16 * 2**20
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)


@dataclass(frozen=True, slots=True)
class Reply:
    """Header names are in lower case."""

    http_status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """None for an empty body."""
        if not self.body:
            return None
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise RequestFailed(
                "bad_answer", f"The answer is no JSON. {ending('bad_answer')}"
            ) from None


@dataclass(frozen=True, slots=True)
class Asked:
    method: str
    target: Target
    allow_loopback: bool
    headers: Mapping[str, str]
    body: bytes | None


class HttpClient:
    """Used on one event loop. Whatever is no 2xx raises RequestFailed, which is tried again or not.

    `hosts`: exact hosts, suffixes that begin with a dot, or either with a port. Over https, except
    for localhost and loopback addresses where they are listed.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        clock: Clock,
        emit: Emit,
        settings: HttpSettings | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self._settings = settings or HttpSettings()
        self._clock = clock
        self._rules = rules_of(hosts)
        self._connections = Connections(self._settings.connections, lookup)
        self._circuits = Circuits(self._settings.breaker, clock, emit, RequestFailed)
        self._timeout = ClientTimeout(
            total=None, sock_connect=self._settings.connections.connect_seconds
        )

    async def get_json(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        reply = await self.request(
            "GET", url, headers={"Accept": "application/json"} | _of(headers)
        )
        return reply.json()

    async def get_bytes(self, url: str, headers: Mapping[str, str] | None = None) -> bytes:
        return (await self.request("GET", url, headers=headers)).body

    async def post_json(
        self, url: str, value: object, headers: Mapping[str, str] | None = None
    ) -> Any:
        """`value`: a model, a dataclass, or what JSON can hold. Gives the answer's JSON."""
        reply = await self.request("POST", url, json_of(value), _JSON | _of(headers))
        return reply.json()

    async def put_json(
        self, url: str, value: object, headers: Mapping[str, str] | None = None
    ) -> Any:
        reply = await self.request("PUT", url, json_of(value), _JSON | _of(headers))
        return reply.json()

    async def request(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        target, rules = self._check(url)
        asked = Asked(method, target, rules.allow_loopback, _of(headers), body)
        self._circuits.check(target.host)
        try:
            async with asyncio.timeout(self._settings.total_seconds):
                reply = await self._exchange(asked)
        except RequestFailed as failure:
            self._circuits.failed(target.host, failure)
            raise
        except CLIENT_ERRORS as error:
            told = failure_of(error, target.host, RequestFailed)
            self._circuits.failed(target.host, told)
            raise told from None
        self._circuits.succeeded(target.host)
        return reply

    async def close(self) -> None:
        await self._connections.close()

    def _check(self, url: str) -> tuple[Target, HostRules]:
        """Raises what the last of the rules has against it."""
        *first, last = self._rules
        for rules in first:
            try:
                return check_url(url, rules), rules
            except UrlRefused:
                continue
        return check_url(url, last), last

    async def _exchange(self, asked: Asked) -> Reply:
        session = self._connections.session(allow_loopback=asked.allow_loopback)
        response = await session.request(
            asked.method,
            url_of(asked.target),
            data=asked.body,
            headers=asked.headers,
            allow_redirects=False,
            timeout=self._timeout,
        )
        async with response:
            if not 200 <= response.status < 300:
                raise await self._refusal(asked.target.host, response)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Reply(response.status, headers, await self._body(asked.target.host, response))

    async def _refusal(self, host: str, response: ClientResponse) -> Exception:
        body = await response.content.read(BODY_BYTES_MAX)
        wait = retry_after_seconds(response.headers.get("Retry-After"), self._clock.now())
        said = Said(host, response.status, body, wait)
        kind = "unauthorized" if response.status == 401 else None
        if response.status in REDIRECTS:
            kind = kind_of_refused(response.status)
        return refusal(said, RequestFailed, kind)

    async def _body(self, host: str, response: ClientResponse) -> bytes:
        chunks, length = [], 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            length += len(chunk)
            if length > self._settings.body_bytes_max:
                raise RequestFailed(
                    "too_large",
                    f"{host} answered with more than {self._settings.body_bytes_max} bytes, the "
                    f"most that is taken. {ending('too_large')}",
                )
        return b"".join(chunks)


def json_of(value: object) -> bytes:
    if (dump := getattr(value, "model_dump_json", None)) is not None:
        return str(dump()).encode()
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError) as problem:
        raise InvalidRequest(
            f"A {type(value).__name__} cannot be sent as JSON ({problem}); use a model, a "
            f"dataclass, or what JSON can hold."
        ) from problem


def _of(headers: Mapping[str, str] | None) -> dict[str, str]:
    return dict(headers or {})
