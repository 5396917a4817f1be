"""Files that are not what their link promises, and folders that are not as they were left."""

import asyncio
import hashlib
import io
import os
import stat
import traceback
import zipfile

import pytest

from contracts.downloads.hosts import (
    HTTP,
    PDF,
    Place,
    case,
    file_host,
    local_rules,
    reply,
    says,
    until,
)
from forebay.core.errors import ForebayError
from forebay.outbound.errors import DownloadFailed, UrlRefused

OCTETS = {"Content_Type": "binary/octet-stream"}
ONLY_PLAN_TYPES = ("pdf", "xml", "jpg", "png")
GIF = b"GIF89a" + bytes(40)


def archive(content: bytes = b"x") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("content", content)
    return made.getvalue()


def refused(place: Place, body: bytes, path: str = "/file.pdf") -> DownloadFailed:
    with pytest.raises(DownloadFailed) as failed:
        place.fetch(says(reply(body, **OCTETS)), path)
    assert place.left_behind == []
    return failed.value


@case(59)
def test_a_link_planted_as_the_unfinished_file_is_not_written_through(case, place, tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"kept")
    place.into.with_name("file.part").symlink_to(precious)
    with pytest.raises(ForebayError):
        place.fetch(says(reply()))
    assert precious.read_bytes() == b"kept"
    assert not place.into.exists()


@pytest.mark.parametrize("case", [pytest.param(59, id="case-59-target")])
def test_a_link_planted_as_the_target_is_replaced_and_not_written_through(case, place, tmp_path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"kept")
    place.into.symlink_to(precious)
    place.fetch(says(reply()))
    assert precious.read_bytes() == b"kept"
    assert not place.into.is_symlink()


@pytest.mark.parametrize("case", [pytest.param(59, id="case-59-mode")])
def test_a_file_is_its_owners_alone(case, place):
    old = os.umask(0)
    try:
        place.fetch(says(reply()))
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.into.stat().st_mode) == 0o600


@case(60)
def test_of_two_downloads_into_one_file_one_wins_and_the_other_says_so(case, place):
    async def run():
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(_request, writer):
            writer.write(reply()[:-10])
            await writer.drain()
            begun.set()
            await may_end.wait()
            writer.write(reply()[-10:])

        async with file_host(slow) as host, place.downloads() as downloads:
            first = asyncio.create_task(downloads.fetch(host.url(), place.into, place.rules))
            await begun.wait()
            await until(lambda: place.left_behind)
            with pytest.raises(DownloadFailed) as second:
                await downloads.fetch(host.url(), place.into, place.rules)
            may_end.set()
            return await first, second.value

    got, second = asyncio.run(run())
    assert (second.kind, second.category) == ("target_busy", "transient")
    assert got.sha256 == hashlib.sha256(place.into.read_bytes()).hexdigest()
    assert place.left_behind == ["file"]


@pytest.mark.parametrize("case", [pytest.param(60, id="case-60-crash")])
def test_what_a_killed_download_left_behind_is_in_nobodys_way(case, place):
    place.into.with_name("file.part").write_bytes(b"half of i")
    assert place.fetch(says(reply())).bytes == len(PDF)
    assert place.left_behind == ["file"]


@pytest.mark.parametrize("case", [pytest.param(60, id="case-60-cancelled")])
def test_a_cancelled_download_leaves_nothing(case, place):
    async def run():
        async with file_host(says(reply()[:-10])) as host, place.downloads() as downloads:
            going = asyncio.create_task(downloads.fetch(host.url(), place.into, place.rules))
            await until(lambda: place.left_behind)
            going.cancel()
            with pytest.raises(asyncio.CancelledError):
                await going

    asyncio.run(run())
    assert place.left_behind == []


@case(61)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"MZ\x90\0" + bytes(60) + b"PE\0\0", id="exe"),
        pytest.param(b"\x7fELF\x02\x01" + bytes(40), id="elf"),
        pytest.param(b"#!/bin/sh\nrm -rf\n", id="script"),
        pytest.param(b"\xef\xbb\xbf <!-- x --> <!DOCTYPE html>\n<html>", id="html"),
        pytest.param("<html>".encode("utf-16"), id="html-utf16"),
        pytest.param(b"<svg onload='x'></svg>", id="svg"),
        pytest.param(b"just text", id="text"),
        pytest.param(archive(), id="zip"),
    ],
)
def test_what_is_no_pdf_is_not_stored_as_one(case, place, body):
    failed = refused(place, body)
    assert (failed.kind, failed.category) == ("wrong_type", "permanent")


@pytest.mark.parametrize("case", [pytest.param(61, id="case-61-unknown")])
@pytest.mark.parametrize("path", ["/file.exe", "/file.zip", "/file.txt"])
def test_a_type_that_is_not_taken_is_refused_before_it_is_asked_for(case, place, path):
    place.rules = local_rules(allowed_types=ONLY_PLAN_TYPES)
    assert refused(place, PDF, path).kind == "wrong_type"
    assert place.host.requests == []


@pytest.mark.parametrize("case", [pytest.param(61, id="case-61-nameless")])
def test_a_file_without_extension_is_judged_by_its_content(case, place):
    place.rules = local_rules(allowed_types=ONLY_PLAN_TYPES)
    assert place.fetch(says(reply(PDF, **OCTETS)), "/download").bytes == len(PDF)
    place.into.unlink()
    assert refused(place, archive(), "/download").kind == "wrong_type"


@case(62)
def test_a_picture_that_is_an_archive_as_well_is_refused(case, place):
    assert refused(place, GIF + archive(), "/file.gif").kind == "wrong_type"


@pytest.mark.parametrize("case", [pytest.param(62, id="case-62-junk")])
def test_a_pdf_behind_some_junk_is_one_and_a_page_that_names_one_is_not(case, place):
    assert place.fetch(says(reply(b"\x01junk" * 40 + PDF, **OCTETS))).bytes > len(PDF)
    place.into.unlink()
    assert refused(place, b"<p>" + PDF).kind == "wrong_type"


@case(63)
def test_an_archive_is_stored_as_it_is_and_never_unpacked(case, place):
    bomb = archive(bytes(20_000_000))
    got = place.fetch(says(reply(bomb, **OCTETS)), "/file.docx")
    assert (got.bytes, place.into.read_bytes()) == (len(bomb), bomb)


@case(67)
@pytest.mark.parametrize(
    "answer",
    [
        says(reply(b"", "403 No")),
        says(reply(b"<html>", **OCTETS)),
        says(b"nonsense\r\n\r\n"),
        says(reply(b"", "302 Found", Location=f"{HTTP}10.0.0.1/secret?sig=hidden")),
    ],
)
def test_no_error_tells_a_path_or_a_signature(case, place, answer):
    with pytest.raises(DownloadFailed) as failed:
        place.fetch(answer, "/secret.pdf?X-Amz-Signature=hidden")
    error = failed.value
    assert "secret" not in str(error)
    assert "hidden" not in str(error)
    assert error.__cause__ is None


@pytest.mark.parametrize("case", [pytest.param(67, id="case-67-stack")])
def test_neither_does_the_stack_that_is_kept_with_a_dead_letter(case, place):
    signature = hashlib.sha256(b"").hexdigest()
    with pytest.raises(DownloadFailed) as failed:
        place.fetch(says(b"nonsense\r\n\r\n"), f"/file.pdf?sig={signature}")
    assert signature not in "".join(traceback.format_exception(failed.value))


@case(68)
def test_a_link_that_has_expired_by_its_own_signature_is_not_asked_for(case, place):
    query = "?X-Amz-Date=20200101T000000Z&X-Amz-Expires=60&X-Amz-Signature=x"
    with pytest.raises(UrlRefused) as failed:
        place.fetch(says(reply()), "/file.pdf" + query)
    assert (failed.value.kind, failed.value.category) == ("expired", "permanent")
    assert place.host.requests == []


@pytest.mark.parametrize("case", [pytest.param(68, id="case-68-malformed")])
@pytest.mark.parametrize("date", ["20200101", "yesterday", "20201345T000000Z", ""])
def test_an_expiry_that_cannot_be_read_is_left_to_the_server(case, place, date):
    query = f"?X-Amz-Date={date}&X-Amz-Expires=60&X-Amz-Signature=x"
    assert place.fetch(says(reply()), "/file.pdf" + query).bytes == len(PDF)
