import asyncio
import dataclasses
import hashlib

import pytest

from contracts.downloads.hosts import (
    PDF,
    Place,
    file_host,
    knowing,
    local_rules,
    quick,
    reply,
    says,
)
from forebay.core.breaker import BreakerPolicy
from forebay.core.errors import Unavailable, Unusable
from forebay.observability.catalogue import silent
from forebay.outbound.downloads import Downloads
from forebay.outbound.errors import DownloadFailed
from forebay.outbound.settings import ConnectionSettings, DownloadSettings
from forebay.testing import FakeClock


@pytest.fixture
def place(tmp_path) -> Place:
    folder = tmp_path / "cache"
    folder.mkdir()
    return Place(folder)


def test_a_file_comes_whole_with_its_hash(place):
    got = place.fetch(says(reply()))
    assert place.into.read_bytes() == PDF
    assert dataclasses.asdict(got) == {
        "path": place.into,
        "bytes": len(PDF),
        "sha256": hashlib.sha256(PDF).hexdigest(),
        "content_type": "application/pdf",
        "seconds": got.seconds,
        "http_status": 200,
        "is_length_verified": True,
    }
    assert place.left_behind == ["file"]


def test_a_file_of_many_pieces_comes_whole(place):
    body = b"%PDF-" + bytes(range(256)) * 20_000
    got = place.fetch(says(reply(body)))
    assert (got.bytes, got.sha256) == (len(body), hashlib.sha256(body).hexdigest())
    assert place.into.read_bytes() == body


def test_no_more_than_the_set_number_runs_at_once_and_waiting_uses_no_time_up(place):
    running, most = 0, 0
    place.settings = quick(concurrency=2, total_seconds=1.0)

    async def slow(_request, writer):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.3)
        running -= 1
        writer.write(reply())

    async def run():
        async with file_host(slow) as host, place.downloads() as downloads:
            await asyncio.gather(
                *(
                    downloads.fetch(host.url(), place.folder / str(number), place.rules)
                    for number in range(10)
                )
            )

    asyncio.run(run())
    assert most == 2
    assert len(place.left_behind) == 10


def test_a_host_that_comes_back_is_found_out_by_a_few_and_then_asked_as_before(place):
    clock = FakeClock()
    settings = quick(breaker=BreakerPolicy(failures=1, open_seconds=30, successes=2, probes=1))
    answers = says(reply(b"", "503 Busy"), reply())

    async def run():
        async with (
            file_host(answers) as host,
            Downloads(settings, clock, silent) as downloads,
        ):
            with pytest.raises(DownloadFailed):
                await downloads.fetch(host.url(), place.into, place.rules)
            with pytest.raises(DownloadFailed) as refused:
                await downloads.fetch(host.url(), place.into, place.rules)
            clock.advance(30)
            for number in range(3):
                await downloads.fetch(host.url(), place.folder / str(number), place.rules)
            return host, refused.value

    host, refused = asyncio.run(run())
    assert (refused.kind, refused.retry_after_seconds) == ("circuit_open", 30)
    assert len(host.requests) == 4


def test_a_folder_that_is_not_there_is_told_and_no_fault_of_the_host(place):
    place.name = "missing/file"
    with pytest.raises(Unavailable, match="takes no file"):
        place.fetch(says(reply()))


def test_each_redirect_is_asked_of_its_domain_with_the_first_link(place):
    asked = []

    def follow(original, following):
        asked.append((original.rpartition("/")[2], following.rpartition("/")[2]))
        return True

    place.rules = local_rules(follow_redirect=follow)
    redirects = [reply(b"", "302 Found", Location=f"/{name}.pdf") for name in "bc"]
    place.fetch(says(*redirects, reply()), "/a.pdf")
    assert asked == [("a.pdf", "b.pdf"), ("a.pdf", "c.pdf")]
    assert len(place.host.requests) == 3
    assert place.host.connections == 1


def test_a_name_is_resolved_once_for_many_connections(place):
    asked = []
    lookup = knowing(files=["127.0.0.1"])

    def counting(*question):
        asked.append(question)
        return lookup(*question)

    place.lookup = counting

    async def run():
        async with file_host(says(reply())) as host, place.downloads() as downloads:
            rules = local_rules(ports=(host.port,))
            url = host.url(host="files.example")
            for number in range(3):
                await downloads.fetch(url, place.folder / str(number), rules)

    asyncio.run(run())
    assert len(asked) == 1


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"total_seconds": 0}, {"file_bytes_max": 0}])
def test_settings_that_could_download_nothing_are_refused(wrong):
    with pytest.raises(Unusable, match="settings of downloads"):
        DownloadSettings(**wrong)


def test_certificates_that_cannot_be_read_are_told_at_the_start(place, tmp_path):
    (tmp_path / "ca.pem").write_text("nonsense")
    for name in ("ca.pem", "missing.pem"):
        place.settings = quick(connections=ConnectionSettings(ca_file=tmp_path / name))
        with pytest.raises(Unusable, match="ca_file"):
            place.downloads()
