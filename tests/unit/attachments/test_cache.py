"""The folder between download and upload."""

import os
from pathlib import Path

import pytest

from forebay.attachments.cache import PART_SECONDS, Cache, OutsideCache

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
        str(cache.folder / "zz" / ours.name),
        "",
    ):
        with pytest.raises(OutsideCache):
            cache.file(named)


def test_a_dropped_file_may_be_dropped_again(cache):
    ours = put(cache, 1)
    cache.drop(str(ours))
    cache.drop(str(ours))
    assert not ours.exists()


def test_at_its_bound_it_waits_and_removes_nothing(tmp_path):
    cache = Cache(tmp_path / "cache", 1_000)
    kept = put(cache, 1_000)
    assert "its bound" in (cache.why_it_waits() or "")
    assert kept.exists()


def test_below_its_bound_it_does_not_wait(cache):
    put(cache, 999)
    assert cache.why_it_waits() is None


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
