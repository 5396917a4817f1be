"""Processes that are asked to stop, and processes that are not asked, while they work."""

import os
import signal
import time

import pytest

from forebay.testing.waiting import eventually
from scenarios.place import is_alive

LOAD = """
@flow.stage(INPUT, name="work", retry=["1s"], concurrency=8)
def work(record):
    time.sleep(0.01)
    note(record.value.decode())
"""
SLOW = """
@flow.stage(INPUT, name="work", retry=["1s"], concurrency=8)
def work(record):
    note("began")
    time.sleep(SECONDS)
    note(record.value.decode())
"""
RECORDS = 1_000


@pytest.fixture
def loaded(place):
    place.declare(LOAD)
    place.create_topics()
    place.produce(b"%d" % number for number in range(RECORDS))
    return place


def slow(place, seconds, records=40):
    place.declare(SLOW.replace("SECONDS", str(seconds)))
    place.create_topics()
    place.produce(b"%d" % number for number in range(records))


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_stop_under_load_commits_all_that_was_handled_and_nothing_more(loaded, command):
    running = loaded.start(*command, "--drain", "20s", "--json")
    loaded.wait_for_notes(100)
    ending = running.terminate(within_seconds=10)
    assert ending.code == 0, ending.err
    assert (ending.receipt["left_behind"], ending.receipt["exit"]) == (0, 0)
    handled = loaded.notes.total()
    assert handled < RECORDS
    assert ending.receipt["committed"] == loaded.committed()
    assert (ending.receipt["handled"], sum(loaded.committed().values())) == (handled, handled)
    assert loaded("run", "--until", "idle").code == 0
    assert loaded.notes == {str(number): 1 for number in range(RECORDS)}


def test_a_stop_before_the_children_listen_is_a_clean_one(embedded_place):
    slow(embedded_place, 0)
    ending = embedded_place("run", "--until", "for=1ms")
    assert (ending.code, ending.receipt["exit"]) == (0, 0)
    assert embedded_place("run", "--until", "idle").receipt["handled"] == 40


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_stop_past_its_deadline_says_so_and_commits_only_what_is_safe(place, command):
    slow(place, 3)
    running = place.start(*command, "--drain", "200ms", "--json")
    place.wait_for_notes(8)
    asked_at = time.monotonic()
    ending = running.terminate(within_seconds=10)
    assert time.monotonic() - asked_at < 2.9
    assert ending.code == 1, ending.err
    assert ending.receipt["exit"] == 1
    assert ending.receipt["left_behind"] == 8
    assert "8 were still running at the deadline and will be handled again" in ending.err
    assert sum(place.committed().values()) == 0
    slow_again = place.folder / "flow.py"
    slow_again.write_text(slow_again.read_text().replace("time.sleep(3)", "time.sleep(0)"))
    assert place("run", "--until", "idle").code == 0
    assert {str(number) for number in range(40)} <= place.notes.keys()


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_second_signal_ends_at_once(embedded_place, command):
    slow(embedded_place, 20)
    running = embedded_place.start(*command, "--drain", "30s", "--json")
    embedded_place.wait_for_notes(8)
    running.signal(signal.SIGTERM)
    time.sleep(0.5)  # two signals at one moment are one
    ending = running.terminate(within_seconds=5)
    assert ending.code == 1, ending.err
    assert sum(embedded_place.committed().values()) == 0


def test_after_a_kill_of_everything_it_flows_again_within_thirty_seconds(loaded):
    running = loaded.start("run")
    loaded.wait_for_notes(100)
    doomed = [running.process.pid, *running.children.values()]
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    running.end()
    eventually(lambda: not any(is_alive(pid) for pid in doomed))
    before = loaded.notes.total()
    again = loaded.start("run", "--until", "idle", "--json")
    loaded.wait_for_notes(before + 1, within_seconds=30)
    assert again.end().code == 0
    assert loaded.notes.keys() == {str(number) for number in range(RECORDS)}


def test_children_whose_supervisor_was_killed_commit_and_end_by_themselves(loaded):
    running = loaded.start("run")
    loaded.wait_for_notes(100)
    children = running.children
    assert children.keys() == {"records", "sinks"}
    running.signal(signal.SIGKILL)
    running.end()
    eventually(lambda: not any(is_alive(pid) for pid in children.values()), within_seconds=10)
    handled = loaded.notes.total()
    assert 0 < sum(loaded.committed().values()) == handled < RECORDS
    assert loaded("run", "--until", "idle").code == 0
    assert loaded.notes == {str(number): 1 for number in range(RECORDS)}
