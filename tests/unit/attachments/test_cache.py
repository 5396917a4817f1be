"""The folder between download and upload."""

import os
import shutil
import time
from pathlib import Path

import pytest

from forebay.attachments.cache import OLD_SECONDS, PART_SECONDS, Cache, OutsideCache
from forebay.testing.waiting import eventually

MONTH = 30 * 86_400.0


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", 1_000)


def put(cache, size, name=None):
    place = cache.place()
    place = place.with_name(name) if name else place
    place.write_bytes(b"x" * size)
    return place


def test_no_two_attempts_have_one_name(cache):
    assert len({cache.place() for _ in range(1_000)}) == 1_000


def test_a_record_can_name_only_files_that_the_cache_made(cache, tmp_path):
    ours = put(cache, 1)
    assert cache.file(str(ours)) == ours
    for named in (
        "/etc/passwd",
        str(tmp_path / "cache" / ".." / "secret"),
        str(ours.parent / "x"),
        str(ours) + ".part",
        str(ours)[:-1] + "\u0663",
        str(ours) + "\n",
        str(ours / ".."),
        "",
    ):
        with pytest.raises(OutsideCache):
            cache.file(named)


def test_a_cached_file_is_known_by_its_name_however_its_folder_was_written(cache, tmp_path):
    ours = put(cache, 1)
    under = f"{ours.parent.name}/{ours.name}"
    for written in (under, f"cache/{under}", f"/mnt/other/{under}", ours.name, f"/zz/{ours.name}"):
        assert cache.file(written) == ours
    shutil.move(cache.folder, tmp_path / "moved")
    moved = Cache(tmp_path / "moved", 1_000)
    assert moved.file(str(ours)).read_bytes() == b"x"


def test_a_dropped_file_may_be_dropped_again(cache):
    ours = put(cache, 1)
    cache.drop(str(ours))
    cache.drop(str(ours))
    assert not ours.exists()


def test_at_its_bound_it_waits_and_removes_nothing(tmp_path):
    cache = Cache(tmp_path / "cache", 1_000)
    kept = put(cache, 1_000)
    assert "its bound" in eventually(cache.why_it_waits)
    assert kept.exists()


def test_at_its_bound_it_says_how_much_of_it_crashes_may_have_left(tmp_path):
    cache = Cache(tmp_path / "cache", 1_000)
    old = put(cache, 600)
    put(cache, 400)
    ago = time.time() - OLD_SECONDS - 60
    os.utime(old, (ago, ago))
    told = cache.look() or ""
    assert "600 bytes of it are older than a day" in told
    assert "delete these" in told


def test_at_its_bound_with_new_files_alone_it_names_none_to_delete(tmp_path):
    cache = Cache(tmp_path / "cache", 1_000)
    put(cache, 1_000)
    assert "delete" not in (cache.look() or "")


def test_below_its_bound_it_does_not_wait(cache):
    put(cache, 999)
    assert cache.look() is None


def test_a_sweep_takes_unfinished_files_after_a_day_and_whole_ones_after_their_time(cache):
    now = 1_000_000_000.0
    part = put(cache, 1, "a.part")
    whole, old = put(cache, 1), put(cache, 1)
    for path, age in ((part, PART_SECONDS + 1), (whole, PART_SECONDS + 1), (old, MONTH + 1)):
        os.utime(path, (now - age, now - age))
    assert cache.sweep(now, MONTH) == 2
    assert (part.exists(), whole.exists(), old.exists()) == (False, True, False)


def test_a_second_process_opens_the_same_folder(cache):
    ours = put(cache, 1)
    assert Cache(cache.folder, 1_000).file(str(ours)) == Path(ours)
