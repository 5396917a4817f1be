"""Servers that answer what a good one would not."""

import asyncio
import gzip

import pytest

from contracts.downloads.hosts import (
    HTTP,
    PDF,
    Place,
    case,
    file_host,
    local_rules,
    quick,
    redirect,
    reply,
    says,
    then_closes,
    trusting,
)
from forebay.outbound.errors import DownloadFailed
from forebay.outbound.rules import follow_none


def refused(place: Place, answer, **how) -> DownloadFailed:
    with pytest.raises(DownloadFailed) as failed:
        place.fetch(answer, **how)
    assert place.left_behind == []
    return failed.value


def told(failed: DownloadFailed) -> tuple[str, str]:
    return failed.kind, failed.category


@case(43)
@pytest.mark.parametrize(
    ("location", "kind"),
    [
        (f"{HTTP}169.254.169.254/", "denied_address"),
        (f"{HTTP}2852039166/", "noncanonical_address"),
        (f"{HTTP}0xa9fea9fe/", "noncanonical_address"),
        ("//10.0.0.1/", "denied_address"),
        ("file:///etc/passwd", "scheme_refused"),
        ("/\\10.0.0.1/", "bad_character"),
        ("//elsewhere.invalid/", "host_refused"),
    ],
)
def test_a_redirect_to_where_no_link_may_lead_is_refused(case, place, location, kind):
    failed = refused(place, says(redirect(location)))
    assert told(failed) == (kind, "permanent")
    assert len(place.host.requests) == 1


@case(44)
def test_a_redirect_from_https_to_http_is_refused(case, place, certificates):
    place.settings = trusting(certificates.ca_file)
    answer = says(redirect(f"{HTTP}127.0.0.1/x"))
    assert told(refused(place, answer, tls=certificates.server())) == ("downgrade", "permanent")


@pytest.mark.parametrize("case", [pytest.param(44, id="case-44-loop")])
def test_redirects_in_a_circle_end(case, place):
    failed = refused(place, says(redirect("/again")))
    assert told(failed) == ("too_many_redirects", "permanent")
    assert len(place.host.requests) == place.rules.redirects_max + 1


@pytest.mark.parametrize("case", [pytest.param(44, id="case-44-relative")])
def test_a_relative_redirect_is_followed_with_its_signature_as_it_is_written(case, place):
    path = "/a%2Fb/../c.pdf?X-Sig=%2B+%7E/="
    got = place.fetch(says(redirect(path, "307 Temporary Redirect"), reply()))
    assert got.bytes == len(PDF)
    assert place.host.requests[1].path in {path, "/c.pdf?X-Sig=%2B+%7E/="}


@pytest.mark.parametrize("case", [pytest.param(44, id="case-44-missing")])
def test_a_redirect_without_a_place_is_refused(case, place):
    assert told(refused(place, says(redirect(None)))) == ("redirect_refused", "permanent")


@pytest.mark.parametrize("case", [pytest.param(44, id="case-44-unreadable")])
@pytest.mark.parametrize("location", ["http" + "://[x", "//[::1", "https" + "://[v1.x]/a"])
def test_a_redirect_to_what_is_no_link_is_refused(case, place, location):
    failed = refused(place, says(redirect(location)))
    assert failed.category == "permanent"
    assert failed.kind in {"redirect_refused", "invalid_host"}
    assert len(place.host.requests) == 1


@pytest.mark.parametrize("case", [pytest.param(44, id="case-44-asked")])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("302 Found", ("login_redirect", "auth")),
        ("308 Permanent Redirect", ("redirect_refused", "permanent")),
    ],
)
def test_a_redirect_that_its_domain_does_not_follow_is_refused(case, place, status, expected):
    place.rules = local_rules(follow_redirect=follow_none)
    failed = refused(place, says(redirect("/elsewhere", status)))
    assert told(failed) == expected
    assert failed.http_status == int(status[:3])


@case(45)
def test_a_body_shorter_than_declared_is_truncated(case, place):
    answer = then_closes(says(reply(PDF[:1000], Content_Length="5000")))
    assert told(refused(place, answer)) == ("truncated", "transient")


@case(46)
def test_a_body_longer_than_declared_is_never_published(case, place):
    failed = refused(place, says(reply(PDF, Content_Length="1000")))
    assert failed.category == "transient"


@case(47)
def test_a_declared_length_over_the_limit_is_refused_before_the_body(case, place):
    place.settings = quick(file_bytes_max=2_000)
    assert told(refused(place, says(reply(PDF)))) == ("too_large", "permanent")


@pytest.mark.parametrize("case", [pytest.param(47, id="case-47-undeclared")])
def test_a_body_without_length_is_cut_off_at_the_limit(case, place):
    place.settings = quick(file_bytes_max=2_000_000)

    async def endless(_request, writer):
        writer.write(reply(b"", Content_Length=None) + PDF)
        while not writer.is_closing():
            writer.write(bytes(65_536))
            await writer.drain()

    assert told(refused(place, endless)) == ("too_large", "permanent")


@case(48)
@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 10\r\nContent-Length: 11\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: +1000\r\n",
        "Content-Length: 99999999999999999999999999\r\n",
        "Content-Length: 10\r\nTransfer-Encoding: chunked\r\n",
    ],
)
def test_a_length_that_two_programs_could_read_in_two_ways_is_refused(case, place, headers):
    raw = f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode() + PDF
    failed = refused(place, then_closes(says(raw)))
    assert failed.kind in {"bad_answer", "truncated", "too_large"}


@case(49)
def test_a_chunked_body_without_its_end_is_truncated(case, place):
    chunk = b"%x\r\n%s\r\n" % (len(PDF), PDF)
    raw = reply(b"", Content_Length=None, Transfer_Encoding="chunked") + chunk
    assert told(refused(place, then_closes(says(raw)))) == ("truncated", "transient")


@pytest.mark.parametrize("case", [pytest.param(49, id="case-49-unverified")])
def test_a_body_whose_length_nobody_said_is_marked(case, place):
    got = place.fetch(then_closes(says(reply(PDF, Content_Length=None))))
    assert not got.is_length_verified
    assert place.fetch(says(reply())).is_length_verified


@case(50)
def test_a_byte_now_and_then_is_too_slow(case, place):
    place.settings = quick(rate_window_seconds=0.3, rate_bytes_min=1_000)

    async def drip(_request, writer):
        writer.write(reply(b"", Content_Length="100000"))
        while not writer.is_closing():
            writer.write(b"%")
            await writer.drain()
            await asyncio.sleep(0.02)

    assert told(refused(place, drip)) == ("too_slow", "transient")


@pytest.mark.parametrize("case", [pytest.param(50, id="case-50-deadline")])
def test_a_stream_that_keeps_its_pace_ends_at_the_deadline_of_all(case, place):
    place.settings = quick(total_seconds=0.5, rate_bytes_min=1)

    async def drip(_request, writer):
        writer.write(reply(b"", Content_Length="100000"))
        while not writer.is_closing():
            writer.write(b"%")
            await writer.drain()
            await asyncio.sleep(0.02)

    assert told(refused(place, drip)) == ("timeout", "transient")


@pytest.mark.parametrize("case", [pytest.param(50, id="case-50-silent")])
def test_a_server_that_falls_silent_is_given_up(case, place):
    place.settings = quick(rate_window_seconds=0.2)
    answer = says(reply(PDF[:100], Content_Length="100000"))
    assert told(refused(place, answer)) == ("timeout", "transient")


@case(51)
def test_an_answer_that_never_begins_ends_at_the_deadline_of_the_head(case, place):
    place.settings = quick(head_seconds=0.3)

    async def continues(_request, writer):
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    assert told(refused(place, continues)) == ("timeout", "transient")


@case(52)
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(100_000)),
            id="headers",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", id="long"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", id="nul"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", id="banner"),
    ],
)
def test_what_is_no_sound_http_is_refused(case, place, raw):
    failed = refused(place, then_closes(says(raw)))
    assert told(failed) == ("bad_answer", "transient")


@case(53)
def test_a_packed_answer_is_refused_and_never_unpacked(case, place):
    bomb = gzip.compress(bytes(10_000_000))
    failed = refused(place, says(reply(bomb, Content_Encoding="gzip")))
    assert told(failed) == ("encoded_body", "permanent")
    assert place.host.requests[0].headers["accept-encoding"] == "identity"


@case(54)
@pytest.mark.parametrize(
    "status", ["206 Partial Content", "204 No Content", "304 Not Modified", "202 Accepted"]
)
def test_a_status_that_a_plain_request_cannot_get_is_no_success(case, place, status):
    failed = refused(place, says(reply(b"", status)))
    assert told(failed) == ("unexpected_status", "permanent")


@pytest.mark.parametrize("case", [pytest.param(54, id="case-54-page")])
@pytest.mark.parametrize("path", ["/file.pdf", "/file.xml", "/file.txt", "/file"])
@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>Sign in</body></html>",
        b"<?xml version='1.0'?>\n<Error><Code>AccessDenied</Code></Error>",
    ],
)
def test_an_error_page_with_status_200_is_no_file(case, place, path, body):
    headers = {"Content_Type": "application/octet-stream"}
    failed = refused(place, says(reply(body, **headers)), path=path)
    assert told(failed) == ("wrong_type", "permanent")


@case(55)
@pytest.mark.parametrize(
    ("status", "kind", "category"),
    [
        (400, "http_refused", "permanent"),
        (401, "denied", "permanent"),
        (403, "denied", "permanent"),
        (404, "not_found", "permanent"),
        (405, "http_refused", "permanent"),
        (408, "timeout", "transient"),
        (410, "not_found", "permanent"),
        (422, "http_refused", "permanent"),
        (425, "busy", "transient"),
        (429, "busy", "transient"),
        (500, "server_error", "transient"),
        (501, "http_refused", "permanent"),
        (502, "server_error", "transient"),
        (503, "busy", "transient"),
        (505, "http_refused", "permanent"),
    ],
)
def test_a_status_decides_whether_a_link_is_tried_again(case, place, status, kind, category):
    failed = refused(place, says(reply(b"no", f"{status} No")))
    assert (failed.kind, failed.category, failed.http_status) == (kind, category, status)


@pytest.mark.parametrize("case", [pytest.param(55, id="case-55-retry-after")])
@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("99999", 3600), ("Thu, 01 Jan 2015 00:00:00 GMT", 0), ("soon", None)],
)
def test_the_server_says_when_to_come_again(case, place, header, seconds):
    failed = refused(place, says(reply(b"", "503 Busy", Retry_After=header)))
    assert failed.retry_after_seconds == seconds


@pytest.mark.parametrize("case", [pytest.param(55, id="case-55-expired")])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            "403 Forbidden",
            b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message>",
        ),
        ("400 Bad Request", b"<Error><Code>ExpiredToken</Code>"),
        ("403 Forbidden", b"Signature not valid in the specified time frame: Start [..]"),
    ],
)
def test_a_server_that_says_so_knows_that_a_link_has_expired(case, place, status, body):
    failed = refused(place, says(reply(body, status, Content_Type="application/xml")))
    assert told(failed) == ("expired", "permanent")


@case(56)
def test_a_file_without_content_is_tried_again(case, place):
    assert told(refused(place, says(reply(b"")))) == ("empty_file", "transient")


@pytest.mark.parametrize("case", [pytest.param(56, id="case-56-cookie")])
def test_neither_a_cookie_nor_a_name_of_the_server_is_taken(case, place):
    headers = {"Set_Cookie": "a=b", "Content_Disposition": 'attachment; filename="../../x"'}

    async def run():
        async with file_host(says(reply(**headers))) as host, place.downloads() as downloads:
            await downloads.fetch(host.url(), place.into, place.rules)
            await downloads.fetch(host.url(), place.folder / "second", place.rules)
            return host

    host = asyncio.run(run())
    assert "cookie" not in host.requests[1].headers
    assert place.left_behind == ["file", "second"]


@case(57)
def test_a_host_that_fails_again_and_again_is_left_alone_and_others_are_not(case, place):
    kinds = []

    async def run():
        broken, sound = file_host(says(reply(b"", "500 No"))), file_host(says(reply()))
        async with broken as bad, sound as good, place.downloads() as downloads:
            for _ in range(12):
                with pytest.raises(DownloadFailed) as failed:
                    await downloads.fetch(bad.url(), place.into, place.rules)
                kinds.append(failed.value.kind)
            await downloads.fetch(good.url(host="localhost"), place.into, place.rules)
            return bad, failed.value

    bad, last = asyncio.run(run())
    assert kinds == ["server_error"] * 10 + ["circuit_open"] * 2
    assert len(bad.requests) == 10
    assert last.category == "circuit_open"
    assert 0 < last.retry_after_seconds <= 30
