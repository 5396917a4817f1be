import asyncio
import json
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from contracts.downloads.hosts import file_host, knowing, reply, says
from forebay.core.breaker import BreakerPolicy
from forebay.core.errors import InvalidRequest
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.outbound.errors import OutboundFailed, RequestFailed, UrlRefused
from forebay.outbound.http import HttpClient, HttpSettings, json_of

JSON = {"Content_Type": "application/json"}


class Order(BaseModel):
    id: str


@dataclass
class Line:
    id: str


def asking(answer, ask, **settings):
    """What `ask(client, url)` gives when a host answers so."""

    async def run():
        async with file_host(answer) as host:
            client = HttpClient(["127.0.0.1"], SystemClock(), silent, HttpSettings(**settings))
            try:
                return await ask(client, host.url("/charge?a=%2F")), host
            finally:
                await client.close()

    return asyncio.run(run())


def failing(answer, **settings) -> RequestFailed:
    with pytest.raises(RequestFailed) as failed:
        asking(answer, lambda client, url: client.get_json(url), **settings)
    return failed.value


def test_json_goes_out_and_comes_back():
    told = reply(b'{"paid": 7}', **JSON)
    got, host = asking(says(told), lambda client, url: client.post_json(url, Order(id="o-1")))
    assert got == {"paid": 7}
    (request,) = host.requests
    assert request.line == "POST /charge?a=%2F HTTP/1.1"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize("value", [Order(id="o-1"), Line("o-1"), {"id": "o-1"}])
def test_models_dataclasses_and_mappings_are_written_as_json(value):
    assert json.loads(json_of(value)) == {"id": "o-1"}


def test_what_is_no_json_is_told_before_anything_is_sent():
    with pytest.raises(InvalidRequest, match="cannot be sent as JSON"):
        json_of(object())


def test_an_empty_answer_is_none_and_bytes_come_as_they_are():
    got, _ = asking(says(reply(b"", "204 No Content")), lambda c, url: c.put_json(url, {}))
    assert got is None
    got, host = asking(
        says(reply(b"\0\1")), lambda c, url: c.get_bytes(url, headers={"X-Key": "secret"})
    )
    assert got == b"\0\1"
    assert host.requests[0].headers["x-key"] == "secret"


@pytest.mark.parametrize(
    ("status", "kind", "category"),
    [
        ("401 No", "unauthorized", "auth"),
        ("403 No", "denied", "permanent"),
        ("404 No", "not_found", "permanent"),
        ("422 No", "http_refused", "permanent"),
        ("429 No", "busy", "transient"),
        ("500 No", "server_error", "transient"),
        ("302 Found", "login_redirect", "auth"),
        ("308 Moved", "redirect_refused", "permanent"),
    ],
)
def test_a_status_that_is_no_success_raises_what_becomes_of_the_record(status, kind, category):
    failed = failing(says(reply(b"no", status, Retry_After="9", Location="/x")))
    assert (failed.kind, failed.category) == (kind, category)
    assert (failed.http_status, failed.retry_after_seconds) == (int(status[:3]), 9)


def test_an_answer_that_is_no_json_or_too_large_or_never_comes_raises():
    assert failing(says(reply(b"<html>"))).kind == "bad_answer"
    assert failing(says(reply(b"x" * 99)), body_bytes_max=50).kind == "too_large"
    assert failing(says(b""), total_seconds=0.2).kind == "timeout"


def test_a_host_that_is_not_listed_is_not_asked():
    async def run():
        client = HttpClient(["bank.example"], SystemClock(), silent)
        try:
            await client.get_json("https" + "://other.example/")
        finally:
            await client.close()

    with pytest.raises(UrlRefused, match="add it to the allowed hosts"):
        asyncio.run(run())


def test_a_listed_host_with_a_private_address_is_not_connected_to():
    async def run():
        lookup = knowing(bank=["10.0.0.5"])
        client = HttpClient(["bank.example"], SystemClock(), silent, lookup=lookup)
        try:
            await client.get_json("https" + "://bank.example/")
        finally:
            await client.close()

    with pytest.raises(OutboundFailed) as failed:
        asyncio.run(run())
    assert failed.value.kind == "denied_address"


def test_a_host_that_fails_again_and_again_is_left_alone():
    async def ask(client, url):
        kinds = []
        for _ in range(3):
            with pytest.raises(RequestFailed) as failed:
                await client.get_json(url)
            kinds.append(failed.value.kind)
        return kinds

    answer = says(reply(b"", "500 No"))
    kinds, host = asking(answer, ask, breaker=BreakerPolicy(failures=2))
    assert (kinds, len(host.requests)) == (["server_error"] * 2 + ["circuit_open"], 2)
