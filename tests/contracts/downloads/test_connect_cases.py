"""Names and servers that are refused when they are connected to."""

import asyncio
import socket

import pytest

from contracts.downloads.hosts import (
    HTTP,
    HTTPS,
    Place,
    case,
    file_host,
    knowing,
    local_rules,
    quick,
    reply,
    says,
    trusting,
)
from forebay.outbound.errors import DownloadFailed
from forebay.outbound.guard import AddressDenied, Guard
from forebay.outbound.settings import ConnectionSettings

PROTOCOL_VERSION_ALERT = bytes.fromhex("15030100020246")
SUPPORTED_VERSIONS = bytes.fromhex("002b000504")
PRIVATE = ("10.0.0.5", "169.254.169.254", "168.63.129.16", "::ffff:10.0.0.5", "fd00:ec2::254")


def refused(place: Place, answer=None, **how) -> DownloadFailed:
    with pytest.raises(DownloadFailed) as failed:
        place.fetch(answer or says(reply()), **how)
    assert place.left_behind == []
    return failed.value


@case(37)
@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_of_a_private_address_is_refused_without_a_connection(case, place, address):
    place.lookup = knowing(inside=[address])
    failed = refused(place, host="inside.example")
    assert (failed.kind, failed.category) == ("denied_address", "permanent")
    assert place.host.connections == 0


@case(38)
@pytest.mark.parametrize("order", ["{} 10.0.0.5", "10.0.0.5 {}"])
@pytest.mark.parametrize("public", ["127.0.0.1", "8.8.8.8", "2606:4700::1111"])
def test_one_private_answer_among_public_ones_denies_the_name(case, place, order, public):
    place.lookup = knowing(mixed=[order.format(public)])
    assert refused(place, host="mixed.example").kind == "denied_address"
    assert place.host.connections == 0


@case(39)
def test_a_name_that_turns_private_is_refused_at_its_second_connection(case, place):
    place.settings = quick(connections=ConnectionSettings(dns_cache_seconds=0))
    place.lookup = knowing(turning=["127.0.0.1", "10.0.0.5"])

    async def run():
        answer = says(reply(Connection="close"))
        async with file_host(answer) as host, place.downloads() as downloads:
            rules = local_rules(ports=(host.port,))
            url = host.url(host="turning.example")
            await downloads.fetch(url, place.into, rules)
            await downloads.fetch(url, place.folder / "second", rules)

    with pytest.raises(DownloadFailed) as failed:
        asyncio.run(run())
    assert failed.value.kind == "denied_address"
    assert place.left_behind == ["file"]


@pytest.mark.parametrize("case", [pytest.param(39, id="case-39-socket")])
def test_the_guard_sees_every_socket_whatever_its_name_was_resolved_to(case):
    guard = Guard(allow_loopback=False)
    for address in ("127.0.0.1", *PRIVATE):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with pytest.raises(AddressDenied):
            guard.socket((family, socket.SOCK_STREAM, 6, "", (address, 80)))
    with guard.socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 443))) as made:
        assert not made.getblocking()


@case(40)
def test_a_name_that_nobody_knows_is_tried_again(case, place):
    place.lookup = knowing(other=["127.0.0.1"])
    failed = refused(place, host="unknown.example")
    assert (failed.kind, failed.category) == ("dns", "transient")


@case(41)
def test_a_connection_made_where_loopback_is_allowed_serves_no_other_rules(case, place):
    place.lookup = knowing(files=["127.0.0.1"])

    async def run():
        async with file_host(says(reply())) as host, place.downloads() as downloads:
            url = host.url(host="files.example")
            await downloads.fetch(url, place.into, local_rules(ports=(host.port,)))
            strict = local_rules(ports=(host.port,), allow_loopback=False)
            await downloads.fetch(url, place.folder / "second", strict)

    with pytest.raises(DownloadFailed) as failed:
        asyncio.run(run())
    assert failed.value.kind == "denied_address"


@pytest.mark.parametrize("case", [pytest.param(41, id="case-41-reuse")])
def test_a_connection_is_used_again_by_the_next_download_from_its_host(case, place):
    async def run():
        async with file_host(says(reply())) as host, place.downloads() as downloads:
            for number in range(5):
                await downloads.fetch(host.url(), place.folder / str(number), place.rules)
            return host

    host = asyncio.run(run())
    assert (host.connections, len(host.requests)) == (1, 5)


@case(42)
@pytest.mark.parametrize("fault", ["expired", "self_signed", "wrong_host", "untrusted"])
def test_a_server_that_cannot_prove_who_it_is_is_refused_for_good(case, place, certificates, fault):
    match fault:
        case "expired":
            tls = certificates.server(expired=True)
        case "self_signed":
            tls = certificates.self_signed()
        case "wrong_host":
            tls = certificates.server("DNS:other.example")
        case _:
            tls = certificates.server()
    place.settings = quick() if fault == "untrusted" else trusting(certificates.ca_file)
    failed = refused(place, tls=tls)
    assert (failed.kind, failed.category) == ("tls", "permanent")
    assert place.host.requests == []


@pytest.mark.parametrize("case", [pytest.param(42, id="case-42-trusted")])
def test_a_file_comes_over_tls_from_a_server_that_the_ca_file_vouches_for(
    case, place, certificates
):
    place.settings = trusting(certificates.ca_file)
    assert place.fetch(says(reply()), tls=certificates.server()).http_status == 200


@pytest.mark.parametrize("case", [pytest.param(42, id="case-42-proxy")])
def test_a_proxy_of_the_environment_is_not_asked(case, place, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"{HTTP}127.0.0.1:9")
    assert place.fetch(says(reply())).bytes > 0


@pytest.mark.parametrize("case", [pytest.param(42, id="case-42-outdated")])
def test_a_server_that_speaks_an_outdated_tls_alone_is_refused_for_good(case, place):
    """It says so with an alert, as OpenSSL does to whom offers 1.2 and newer."""
    offers = []

    async def speak(reader, writer):
        offers.append(await reader.read(4_096))
        writer.write(PROTOCOL_VERSION_ALERT)
        await writer.drain()
        writer.close()

    async def run():
        server = await asyncio.start_server(speak, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, place.downloads() as downloads:
            await downloads.fetch(f"{HTTPS}127.0.0.1:{port}/file.pdf", place.into, place.rules)

    with pytest.raises(DownloadFailed) as failed:
        asyncio.run(run())
    assert (failed.value.kind, failed.value.category) == ("tls", "permanent")
    assert len(offers) == 1
    versions = offers[0][offers[0].index(SUPPORTED_VERSIONS) :][5:9]
    assert versions == bytes.fromhex("03040303"), "1.3 and 1.2, nothing older"


@pytest.mark.parametrize("case", [pytest.param(42, id="case-42-no-fallback")])
def test_a_server_without_tls_is_not_asked_again_without_it(case, place):
    place.settings = quick(head_seconds=0.3)

    async def run():
        async with file_host(says(reply())) as host, place.downloads() as downloads:
            place.host = host
            await downloads.fetch(host.url(scheme=HTTPS), place.into, place.rules)

    with pytest.raises(DownloadFailed):
        asyncio.run(run())
    assert place.host.requests == []
