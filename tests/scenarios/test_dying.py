"""Children that die, are killed by a record, or wait for a handler that never returns."""

import os
import signal

from forebay.core.envelope import read_envelope
from forebay.engine.supervision import ASKS_FOR_RESTART
from forebay.testing.waiting import eventually

LOAD = """
@flow.stage(INPUT, name="work", retry=["1s"], concurrency=8)
def work(record):
    time.sleep(0.01)
    note(record.value.decode())
"""
KILLERS = """
@flow.stage(INPUT, name="work", retry=["1s"], concurrency=8)
def work(record):
    if record.value in {b"7", b"33"}:
        os.kill(os.getpid(), signal.SIGKILL)
    note(record.value.decode())
"""
NEVER = """
@flow.stage(INPUT, name="work", retry=[], concurrency=4, timeout="1s")
def work(record):
    note(record.value.decode())
    if record.value == b"7":
        time.sleep(3600)
"""


def told_of(letters):
    return {
        letter.value: envelope.failure.category
        for letter in letters
        if (envelope := read_envelope(letter)) and envelope.failure
    }


def test_a_child_that_was_killed_is_started_again_and_nothing_is_lost(place):
    place.declare(LOAD)
    place.create_topics()
    place.produce(b"%d" % number for number in range(1_000))
    running = place.start("run", "--until", "idle", "--json", "--log-level", "info")
    place.wait_for_notes(100)
    first = running.children["records"]
    os.kill(first, signal.SIGKILL)
    eventually(lambda: running.children.get("records", first) != first)
    ending = running.end()
    assert ending.code == 0, ending.err
    assert place.notes.keys() == {str(number) for number in range(1_000)}
    assert sum(place.committed().values()) == 1_000
    (death,) = running.events("child.ended")
    assert (death["exit_code"], death["restart_seconds"]) == (-signal.SIGKILL, 0.2)


def test_records_that_kill_their_process_are_dead_lettered_and_the_others_handled(
    embedded_place,
):
    place = embedded_place
    place.declare(KILLERS)
    place.create_topics()
    place.produce(b"%d" % number for number in range(60))
    ending = place("run", "--until", "idle")
    assert ending.code == 0, ending.err
    assert told_of(place.letters()) == {b"7": "killer", b"33": "killer"}
    assert place.notes.keys() == {str(number) for number in range(60)} - {"7", "33"}
    assert sum(place.committed().values()) == 60


def test_a_handler_that_never_returns_costs_its_record_and_no_other(embedded_place):
    place = embedded_place
    place.declare(NEVER)
    place.create_topics()
    place.produce(b"%d" % number for number in range(20))
    running = place.start("run", "--json", "--log-level", "info")
    eventually(lambda: told_of(place.letters()) == {b"7": "timeout"}, within_seconds=10)
    (restart,) = eventually(lambda: running.events("child.ended"), within_seconds=10)
    assert (restart["exit_code"], restart["restart_seconds"]) == (ASKS_FOR_RESTART, 0)
    place.produce([b"20", b"21"])
    place.wait_for_notes(22)
    ending = running.terminate()
    assert ending.code == 0, ending.err
    assert place.notes == {str(number): 1 for number in range(22)}
    assert sum(place.committed().values()) == 22
