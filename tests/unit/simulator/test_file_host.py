import asyncio
import hashlib
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from forebay.simulator.answers import Times
from forebay.simulator.behaviours import ALWAYS, Behaviour
from forebay.simulator.content import size_and_hash
from forebay.simulator.file_host import FileHost, FileHostSettings
from forebay.simulator.links import STYLES, FileLink
from forebay.simulator.scenarios import script

NOW = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
TIMES = Times(slow_seconds=0.1, hang_seconds=0.05, never_seconds=30.0, crawl_every_seconds=0.01)
SIZE = 5000


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now.timestamp()


class Visit:
    """A file host, a client that trusts its certificate, and a clock to turn."""

    def __init__(self, host, place, session, clock):
        self.host, self.place, self.session, self.clock = host, place, session, clock
        self.context = ssl.create_default_context(cafile=place.ca_file)

    def link(self, what, name="report.pdf", style="aws_version_4", **more):
        return FileLink(Behaviour(*what), "7x1", SIZE, name, style, **more)

    async def get(self, url, **more):
        more.setdefault("timeout", aiohttp.ClientTimeout(total=20))
        wanted = self.session.get(
            str(url), ssl=self.context, allow_redirects=False, auto_decompress=False, **more
        )
        async with wanted as response:
            return response.status, response.headers, await response.read()

    async def ask(self, *what, name="report.pdf"):
        return await self.get(self.link(what, name).url(self.place.https, NOW))

    async def control(self, method, path, **more):
        async with self.session.request(method, f"{self.place.control}{path}", **more) as response:
            return response.status, await response.json()


@pytest.fixture
def visit(tmp_path):
    @asynccontextmanager
    async def opened():
        clock = Clock()
        host = FileHost(FileHostSettings(tmp_path, times=TIMES), clock)
        async with host as place, aiohttp.ClientSession() as session:
            # Else the client asks a second time by itself after a reset, and counts are twice.
            session._retry_connection = False
            yield Visit(host, place, session, clock)

    def play(story):
        async def whole():
            async with opened() as visit:
                await story(visit)

        asyncio.run(whole())

    return play


@pytest.mark.parametrize(
    ("name", "kind", "head"),
    [
        ("report.pdf", "application/pdf", b"%PDF-"),
        ("REPORT.PDF", "application/pdf", b"%PDF-"),
        ("roof.jpeg", "image/jpeg", b"\xff\xd8\xff"),
        ("sketch.png", "image/png", b"\x89PNG\r\n\x1a\n"),
        ("claim.xml", "application/xml", b"<?xml "),
    ],
)
def test_a_good_file_has_the_bytes_that_the_truth_promises(visit, name, kind, head):
    async def story(visit):
        for what in ("ok", "slow"):
            link = visit.link((what,), name)
            status, headers, body = await visit.get(link.url(visit.place.https, NOW))
            assert (status, headers["Content-Type"]) == (200, kind)
            assert body.startswith(head)
            ending = link.ending()
            assert (len(body), hashlib.sha256(body).hexdigest()) == (ending.size, ending.sha256)
            assert int(headers["Content-Length"]) == SIZE

    visit(story)


def test_a_large_file_is_streamed_and_hashes_the_same(visit):
    async def story(visit):
        link = FileLink(Behaviour("ok"), "7x9", 3_000_000, "large.pdf", "azure_sas")
        _, headers, body = await visit.get(link.url(visit.place.https, NOW))
        assert int(headers["Content-Length"]) == len(body) == 3_000_000
        assert hashlib.sha256(body).hexdigest() == link.ending().sha256

    visit(story)


def test_every_stored_file_of_a_script_is_served_as_promised_within_four_attempts(visit):
    async def story(visit):
        events = list(script("duplicates", 5, 60, visit.place.https, signed_at=NOW))
        events += list(script("storm", 5, 60, visit.place.https, signed_at=NOW))
        served = 0
        for event in events:
            for attachment in event.truth.attachments:
                if attachment.ending.state != "stored" or attachment.ending.size > 10**6:
                    continue
                body = await _in_the_end(visit, attachment.url)
                assert hashlib.sha256(body).hexdigest() == attachment.ending.sha256
                served += 1
        assert served > 100

    visit(story)


async def _in_the_end(visit, url):
    url = aiohttp.client.URL(url, encoded=True)
    for _ in range(4):
        try:
            status, _, body = await visit.get(url)
        except aiohttp.ClientError:
            continue
        if status == 200:
            return body
    raise AssertionError(f"four attempts were not enough for {url}")


@pytest.mark.parametrize(
    ("name", "status", "headers"),
    [
        ("busy", 503, {"Retry-After": "1"}),
        ("throttled", 429, {"Retry-After": "1"}),
        ("error", 500, {}),
    ],
)
def test_a_flaky_answer_fails_as_often_as_the_link_says(visit, name, status, headers):
    async def story(visit):
        for _ in range(2):
            got, told, _ = await visit.ask(name, 2)
            assert got == status
            assert told.items() >= headers.items()
        assert (await visit.ask(name, 2))[0] == 200
        assert visit.host.faults == {name: 2}

    visit(story)


@pytest.mark.parametrize("name", ["reset", "hang", "cut", "broken"])
def test_a_connection_that_breaks_is_an_error_of_the_client_and_heals(visit, name):
    async def story(visit):
        for _ in range(2):
            with pytest.raises(aiohttp.ClientError):
                await visit.ask(name, 2)
        status, _, body = await visit.ask(name, 2)
        assert (status, len(body)) == (200, SIZE)
        assert visit.host.faults == {name: 2}

    visit(story)


def test_who_always_fails_never_serves(visit):
    async def story(visit):
        assert {(await visit.ask("error", ALWAYS))[0] for _ in range(20)} == {500}
        assert visit.host.faults == {"error": 20}

    visit(story)


@pytest.mark.parametrize("name", ["never", "crawl"])
def test_an_answer_without_end_outlasts_the_client(visit, name):
    async def story(visit):
        link = visit.link((name,)).url(visit.place.https, NOW)
        with pytest.raises(asyncio.TimeoutError):
            await visit.get(link, timeout=aiohttp.ClientTimeout(total=0.3))
        assert visit.host.faults == {name: 1}

    visit(story)


@pytest.mark.parametrize(
    ("name", "kind", "head"),
    [
        ("html", "text/html", b"<!DOCTYPE html>"),
        ("disguised", "application/pdf", b"<!DOCTYPE html>"),
        ("program", "application/pdf", b"MZ"),
        ("encoded", "application/pdf", b"\x1f\x8b"),
        ("octet", "application/octet-stream", b"%PDF-"),
        ("mislabelled", "text/plain", b"%PDF-"),
        ("empty", "application/pdf", b""),
    ],
)
def test_a_lie_is_told_as_asked(visit, name, kind, head):
    async def story(visit):
        status, headers, body = await visit.ask(name)
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, kind)
        assert body.startswith(head)
        assert bool(body) == bool(head)
        assert headers.get("Content-Encoding") == ("gzip" if name == "encoded" else None)

    visit(story)


@pytest.mark.parametrize(("name", "is_declared"), [("huge", True), ("endless", False)])
def test_a_huge_file_goes_on_for_as_long_as_somebody_reads(visit, caplog, name, is_declared):
    async def story(visit):
        url = visit.link((name,)).url(visit.place.https, NOW)
        async with visit.session.get(url, ssl=visit.context) as response:
            assert (response.content_length is not None) == is_declared
            assert (response.content_length or 2**40) > 2**33
            read = 0
            async for piece in response.content.iter_any():
                read += len(piece)
                if read > 20_000_000:
                    break
            response.close()
        assert visit.host.faults == {name: 1}
        assert (await visit.ask("ok"))[0] == 200

    visit(story)
    assert [record for record in caplog.records if record.name == "aiohttp.server"] == []


@pytest.mark.parametrize(
    ("name", "status", "word"),
    [
        ("denied", 403, b"AccessDenied"),
        ("expired", 403, b"Request has expired"),
        ("missing", 404, b"NoSuchKey"),
        ("gone", 410, b"Gone"),
    ],
)
def test_a_refusal_is_xml_with_its_reason(visit, name, status, word):
    async def story(visit):
        got, headers, body = await visit.ask(name)
        assert (got, headers["Content-Type"].partition(";")[0]) == (status, "application/xml")
        assert word in body

    visit(story)


def test_redirects_lead_to_a_denied_place_in_a_circle_or_to_a_file(visit):
    async def story(visit):
        targets = [(await visit.ask("redirect-denied", n))[1]["Location"] for n in range(1, 6)]
        assert len(set(targets)) == 5
        assert any("169.254.169.254" in target for target in targets)
        _, headers, _ = await visit.ask("redirect-loop")
        assert headers["Location"] == visit.link(("redirect-loop",)).path
        _, headers, _ = await visit.ask("redirect-ok")
        status, _, body = await visit.get(f"{visit.place.https}{headers['Location']}")
        assert (status, len(body)) == (200, SIZE)
        assert visit.host.faults == {"redirect-denied": 5, "redirect-loop": 1, "redirect-ok": 1}

    visit(story)


@pytest.mark.parametrize("style", STYLES)
def test_a_link_of_every_style_lives_until_its_time_and_not_longer(visit, style):
    async def story(visit):
        link = visit.link(("ok",), style=style, seconds=3600)
        url = link.url(visit.place.https, NOW)
        visit.clock.now = NOW + timedelta(seconds=3599)
        assert (await visit.get(url))[0] == 200
        visit.clock.now = NOW + timedelta(seconds=3602)
        status, _, body = await visit.get(url)
        assert (status, b"Request has expired" in body) == (403, True)
        assert visit.host.faults == {"expired": 1}

    visit(story)


def test_a_link_whose_times_cannot_be_read_is_served(visit):
    async def story(visit):
        place = f"{visit.place.http}/f/ok/1x1-400/a.pdf"
        for query in (
            "",
            "?Expires=soon",
            "?X-Amz-Date=now&X-Amz-Expires=1",
            "?Policy=%25",
            "?se=",
        ):
            assert (await visit.get(place + query))[0] == 200

    visit(story)


def test_a_path_that_means_nothing_is_not_found(visit):
    async def story(visit):
        for path in ("/", "/f/ok/1x1/a.pdf", "/f/nonsense/1x1-400/a.pdf", "/_control/faults"):
            assert (await visit.get(f"{visit.place.http}{path}"))[0] == 404

    visit(story)


def test_one_connection_serves_many_files(visit):
    async def story(visit):
        for _ in range(20):
            await visit.ask("ok")
        assert visit.host.requests == 20
        (kept,) = visit.session.connector._conns.values()
        assert len(kept) == 1

    visit(story)


def test_during_an_outage_nothing_is_served_and_the_links_failures_count_on(visit):
    async def story(visit):
        said = await visit.control("POST", "/_control", json={"fail_for_seconds": 7})
        assert said[1]["failing_for_seconds"] == pytest.approx(7)
        for _ in range(2):
            with pytest.raises(aiohttp.ClientError):
                await visit.ask("busy", 3)
        visit.clock.now += timedelta(seconds=8)
        assert (await visit.ask("busy", 3))[0] == 503
        assert (await visit.ask("busy", 3))[0] == 200
        _, said = await visit.control("GET", "/_control/faults")
        assert said == {
            "faults": {"outage": 2, "busy": 1},
            "requests": 4,
            "failing_for_seconds": 0.0,
        }

    visit(story)


def test_a_busy_outage_answers_503_and_can_be_ended(visit):
    async def story(visit):
        await visit.control("POST", "/_control", json={"fail_for_seconds": 60, "how": "busy"})
        assert (await visit.ask("ok"))[0] == 503
        await visit.control("POST", "/_control", json={"fail_for_seconds": 0})
        assert (await visit.ask("ok"))[0] == 200

    visit(story)


@pytest.mark.parametrize(
    "order",
    [
        b"",
        b"[]",
        b"{}",
        b'{"fail_for_seconds": "soon"}',
        b'{"fail_for_seconds": -1}',
        b'{"fail_for_seconds": NaN}',
        b'{"fail_for_seconds": 1, "how": "explode"}',
        b'{"fail_for_seconds": 1, "how": []}',
    ],
)
def test_an_order_that_is_none_changes_nothing_and_is_answered_with_a_sentence(visit, order):
    async def story(visit):
        status, said = await visit.control("POST", "/_control", data=order)
        assert status == 400
        assert said["error"].startswith("Nothing changes. Write")
        assert (await visit.ask("ok"))[0] == 200

    visit(story)


def test_the_content_depends_on_its_seed():
    assert size_and_hash("a", 500, "pdf")[0] == 500
    assert size_and_hash("a", 500, "pdf") != size_and_hash("b", 500, "pdf")
