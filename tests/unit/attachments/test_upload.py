"""From the cache to the destination, more than once if need be."""

import asyncio
import hashlib
from uuid import uuid4

import pytest

from forebay.attachments.files import CachedFile
from forebay.attachments.upload import CacheLost, beside, upload
from forebay.lakehouse.files.local.files import LocalFiles
from forebay.lakehouse.files.port import Differs

URL = "https://files.example/a.pdf?signature"
NAME = "documentsReceived/A-1/tr-1/A-1_a.pdf"


@pytest.fixture
def files(tmp_path):
    return LocalFiles(tmp_path / "files")


def cached(tmp_path, content=b"content"):
    path = tmp_path / uuid4().hex
    path.write_bytes(content)
    return CachedFile(path, len(content), hashlib.sha256(content).hexdigest())


def run(file, files):
    return asyncio.run(upload(file, NAME, URL, files))


def content(files, name, tmp_path):
    return (tmp_path / "files" / name).read_bytes()


def test_the_file_is_stored_under_its_name(files, tmp_path):
    assert run(cached(tmp_path), files) == NAME
    assert content(files, NAME, tmp_path) == b"content"


def test_an_upload_that_is_made_again_finds_its_file(files, tmp_path):
    file = cached(tmp_path)
    run(file, files)
    assert run(file, files) == NAME


def test_an_upload_whose_cached_file_is_gone_finds_what_it_stored_before(files, tmp_path):
    file = cached(tmp_path)
    run(file, files)
    file.path.unlink()
    assert run(file, files) == NAME


def test_another_file_of_that_name_is_not_touched(files, tmp_path):
    run(cached(tmp_path, b"other content"), files)
    name = run(cached(tmp_path), files)
    assert name == beside(NAME, URL)
    assert content(files, NAME, tmp_path) == b"other content"
    assert content(files, name, tmp_path) == b"content"


def test_what_was_stored_beside_is_found_again_without_the_cache(files, tmp_path):
    run(cached(tmp_path, b"other content"), files)
    file = cached(tmp_path)
    run(file, files)
    file.path.unlink()
    assert run(file, files) == beside(NAME, URL)


def test_a_cached_file_that_is_gone_is_told_and_nothing_is_stored(files, tmp_path):
    file = cached(tmp_path)
    file.path.unlink()
    with pytest.raises(CacheLost, match="downloaded again"):
        run(file, files)
    assert not (tmp_path / "files" / NAME).exists()


def test_a_cached_file_that_was_damaged_is_not_stored(files, tmp_path):
    file = cached(tmp_path)
    file.path.write_bytes(b"CONTENT")
    with pytest.raises(CacheLost):
        run(file, files)
    assert not (tmp_path / "files" / NAME).exists()


def test_a_long_name_that_is_taken_stays_short_enough_beside():
    long = f"a/{'x' * 251}.pdf"
    assert len(beside(long, URL).rpartition("/")[2]) == 255
    assert beside(long, URL).endswith(".pdf")


def test_two_names_that_are_both_taken_need_a_person(files, tmp_path):
    for taken in (NAME, beside(NAME, URL)):
        other = cached(tmp_path, taken.encode())
        asyncio.run(files.put(other.path, taken, size=other.size, sha256=other.sha256))
    with pytest.raises(Differs, match="then replay"):
        run(cached(tmp_path), files)
