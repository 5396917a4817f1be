"""What a worker of xact opens, and when."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from forebay.attachments.cache import Cache
from forebay.bootstrap.first_use import FilesOnFirstUse
from forebay.bootstrap.sweeping import Sweeps
from forebay.bootstrap.xact import open_xact
from forebay.core.errors import AccessDenied, Closed
from forebay.domains.xact.messages import read_event
from forebay.domains.xact.tools import TOOLS
from forebay.lakehouse.files.local.files import LocalFiles
from forebay.observability.catalogue import silent
from forebay.settings import Flags, read_settings
from forebay.testing.clock import FakeClock
from forebay.testing.waiting import eventually
from unit.domains.xact.events import event_record

OLD_SECONDS = 40 * 86_400.0


def opened(folder: Path, use, **environment: str):
    """What `use` gives for the tools of one process."""
    settings = read_settings(Flags(folder=folder), environment)

    async def work():
        async with open_xact(settings, silent).shared[TOOLS]() as tools:
            return await use(tools)

    return asyncio.run(work())


def test_a_worker_that_stores_nothing_makes_no_folder(tmp_path):
    async def ingest(tools):
        return tools.downloading.strategy.rules.allowed

    assert opened(tmp_path / "data", ingest)
    assert not (tmp_path / "data").exists()


def test_the_cache_is_there_for_the_first_who_puts_a_file_into_it(tmp_path):
    async def download(tools):
        return tools.downloading.cache.place()

    place = opened(tmp_path, download)
    assert place.parent.is_dir()
    assert place.parent.parent == tmp_path / "cache"
    assert not (tmp_path / "files").exists()


def test_the_place_of_files_is_opened_by_the_first_upload(tmp_path):
    async def upload(tools):
        return await tools.files.of("xact").stat("nothing.pdf")

    assert opened(tmp_path, upload) is None
    assert (tmp_path / "files" / "xact").is_dir()
    assert not (tmp_path / "cache").exists()


def test_what_crashes_left_in_the_cache_is_removed_once_it_is_used(tmp_path):
    left = Cache(tmp_path / "cache", 1_000).place()
    left.write_bytes(b"left")
    then = time.time() - OLD_SECONDS
    os.utime(left, (then, then))

    async def wait(tools):
        await asyncio.to_thread(tools.cache.why_it_waits)  # a stage asks on a thread of its own
        await asyncio.to_thread(eventually, lambda: not left.exists())

    opened(tmp_path, wait)


def test_a_shadow_run_on_the_same_folder_does_not_take_events_for_repeats(tmp_path):
    event = read_event(event_record(data={"attachments": ["https://files.example/a.pdf"]}))

    async def mark(tools):
        tools.seen.mark([(event.trace_id, url) for url in event.attachments])

    async def look(tools):
        return list(tools.seen.unseen(event))

    opened(tmp_path, mark)
    assert opened(tmp_path, look) == []
    assert opened(tmp_path, look, KAFKA_CONSUMER_GROUP_PREFIX="shadow") == list(event.attachments)


def test_a_cache_that_cannot_be_made_names_its_setting(tmp_path):
    (tmp_path / "taken").write_text("a file")

    async def download(tools):
        return tools.cache.why_it_waits()

    with pytest.raises(AccessDenied, match=r"cannot be made .*storage\.cache_dir"):
        opened(tmp_path, download, CACHE_DIR=str(tmp_path / "taken"))


def test_a_cache_that_could_not_be_made_is_made_when_its_cause_is_mended(tmp_path):
    taken = tmp_path / "cache"
    taken.write_text("a file")
    told: list[Cache] = []
    cache = Cache(taken, 1_000, told.append)
    with pytest.raises(AccessDenied):
        cache.place()
    taken.unlink()
    assert cache.place().parent.is_dir()
    cache.place()
    assert len(told) == 1


def test_files_that_nobody_opened_are_closed_all_the_same(tmp_path):
    files = FilesOnFirstUse("files", lambda: LocalFiles(tmp_path / "files"))
    asyncio.run(files.close())
    with pytest.raises(Closed, match="closed by their owner"):
        files.list()
    assert not (tmp_path / "files").exists()


def test_a_sweep_that_fails_is_told_and_one_that_comes_too_late_does_not_begin():
    told = []

    def tell(event, **fields):
        told.append((event, fields["error_message"]))

    async def work():
        sweeps = Sweeps(FakeClock(), tell)

        def fail(_now):
            raise OSError("no disk")

        sweeps.begin(fail)
        await asyncio.to_thread(eventually, lambda: told)
        sweeps.end()
        sweeps.begin(fail)

    asyncio.run(asyncio.wait_for(work(), 10))
    assert told == [("sweep.failed", "no disk")]
