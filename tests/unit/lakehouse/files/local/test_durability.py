import asyncio
import os
import threading

import pytest

from forebay.core.errors import Closed, Unavailable
from forebay.lakehouse.files.local.durability import OneForAll, find_syncfs
from forebay.lakehouse.files.local.tree import Tree
from forebay.testing.waiting import eventually

PARTS = ("x",)


@pytest.fixture
def tree(tmp_path):
    tree = Tree(tmp_path)
    yield tree
    tree.close()


class Sync:
    """A disk that is slow until it is let go, and tells how often it was called."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_end = threading.Event()

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        self.may_end.wait(10)


def wait_in_a_thread(durability: OneForAll, outcomes: list[object]) -> threading.Thread:
    def wait() -> None:
        try:
            asyncio.run(durability.wait(PARTS))
            outcomes.append("durable")
        except (Closed, Unavailable) as error:
            outcomes.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_the_real_call_syncs_an_open_folder_and_tells_of_a_closed_one(tmp_path):
    sync = find_syncfs()
    assert sync is not None, "Linux has it"
    folder = os.open(tmp_path, os.O_RDONLY)
    sync(folder)
    os.close(folder)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync(folder)


def test_who_comes_while_a_sync_runs_waits_for_the_next_one(tmp_path, tree):
    """The running one may have passed over what was written meanwhile."""
    sync, outcomes = Sync(), []
    durability = OneForAll(tmp_path, tree, sync)
    first = wait_in_a_thread(durability, outcomes)
    eventually(lambda: sync.calls == 1)
    late = [wait_in_a_thread(durability, outcomes) for _ in range(3)]
    eventually(lambda: len(durability._waiting) == 3 and durability._is_rung)
    assert outcomes == []
    sync.may_end.set()
    for thread in (first, *late):
        thread.join(10)
    assert outcomes == ["durable"] * 4
    assert sync.calls == 2
    assert not durability._is_rung, "its thread would never rest"
    durability.close()


def test_closing_answers_those_who_wait_and_refuses_those_who_come_later(tmp_path, tree):
    sync, outcomes = Sync(), []
    durability = OneForAll(tmp_path, tree, sync)
    waiting = wait_in_a_thread(durability, outcomes)
    eventually(lambda: sync.calls == 1)
    closing = threading.Thread(target=durability.close)
    closing.start()
    eventually(lambda: durability._is_closed)
    wait_in_a_thread(durability, outcomes).join(10)
    assert outcomes == [Closed]
    sync.may_end.set()
    for thread in (waiting, closing):
        thread.join(10)
    assert outcomes == [Closed, "durable"]
    durability.close()


def test_one_that_was_cancelled_does_not_keep_the_others_from_their_answer(tmp_path, tree):
    sync = Sync()
    durability = OneForAll(tmp_path, tree, sync)

    async def both() -> None:
        given_up = asyncio.create_task(durability.wait(PARTS))
        staying = asyncio.create_task(durability.wait(PARTS))
        await asyncio.to_thread(eventually, lambda: sync.calls == 1)
        given_up.cancel()
        sync.may_end.set()
        await staying
        assert given_up.cancelled()

    asyncio.run(both())
    durability.close()


def test_a_loop_that_was_closed_meanwhile_does_not_stop_the_thread(tmp_path, tree):
    sync, outcomes = Sync(), []
    durability = OneForAll(tmp_path, tree, sync)
    loop = asyncio.new_event_loop()
    task = loop.create_task(durability.wait(PARTS))
    while not sync.calls:
        loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    sync.may_end.set()
    wait_in_a_thread(durability, outcomes).join(10)
    assert outcomes == ["durable"]
    durability.close()


def test_nobody_waits_no_thread_runs(tmp_path, tree):
    before = threading.active_count()
    OneForAll(tmp_path, tree, Sync()).close()
    assert threading.active_count() == before
