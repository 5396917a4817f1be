"""How `run` and `worker` end by themselves, and what they say last."""

import signal

import pytest

SIMPLE = """
@flow.stage(INPUT, name="work", retry=["1s"], order_by="key")
def work(record):
    note(record.value.decode())
    if record.value == b"3":
        return Skip("nothing to do")
    if record.value == b"4":
        return Reject("bad")
    if record.value == b"5":
        return Retry("later")
"""
STOPPING = """
@flow.stage(INPUT, name="work", retry=["1s"], order_by="partition")
def work(record):
    if record.value == b"5":
        raise SystemExit("the vault is sealed")
    note(record.value.decode())
"""
KEYS = {
    *("handled", "retried", "dead_lettered", "skipped", "emitted", "committed", "waiting"),
    *("next_due", "seconds", "exit"),
}


@pytest.fixture
def simple(embedded_place):
    embedded_place.declare(SIMPLE, partitions=1)
    embedded_place.create_topics()
    embedded_place.produce(b"%d" % number for number in range(20))
    return embedded_place


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_count_is_exact_and_the_last_line_says_all_of_it(simple, command):
    ending = simple(*command, "--until", "count=10")
    assert ending.code == 0, ending.err
    receipt = ending.receipt
    assert receipt.keys() >= KEYS
    told = [receipt[name] for name in ("handled", "skipped", "dead_lettered", "retried", "exit")]
    assert told == [9, 1, 1, 1, 0]
    assert receipt["committed"][f"{simple.input}:0"] == 10
    assert simple.notes.keys() == {str(number) for number in range(10)}
    assert "nothing lost" in ending.err


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_an_offset_is_exclusive_and_goes_on_where_it_stopped(simple, command):
    place = f"{simple.input}:0"
    first = simple(*command, "--until", f"{place}=7")
    assert (first.code, first.receipt["committed"][place]) == (0, 7)
    assert simple.notes.keys() == {str(number) for number in range(7)}
    again = simple(*command, "--until", f"{place}=9")
    assert (again.code, again.receipt["committed"][place]) == (0, 9)
    assert simple.notes.keys() == {str(number) for number in range(9)}


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_time_ends_it_wherever_it_stands(simple, command):
    ending = simple(*command, "--until", "for=1s")
    assert ending.code == 0, ending.err
    assert 1.0 <= ending.receipt["seconds"] < 8
    assert ending.receipt["committed"] == simple.committed()


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
@pytest.mark.parametrize("until", ["soon", "count=0", "for=never", "topic:0=x"])
def test_nothing_to_wait_for_is_wrong_use(simple, command, until):
    ending = simple(*command, "--until", until)
    assert (ending.code, ending.out) == (2, "")
    assert simple.notes == {}


def test_a_stage_that_is_not_there_is_named(simple):
    ending = simple("worker", "nobody")
    assert ending.code in {1, 2}
    assert "has no worker nobody; it has work, retry-scheduler, dlq-handler" in ending.err


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_handler_that_stops_its_stage_ends_the_run_and_leaves_its_record(embedded_place, command):
    place = embedded_place
    place.declare(STOPPING, partitions=1)
    place.create_topics()
    place.produce(b"%d" % number for number in range(20))
    ending = place(*command, "--until", "idle")
    assert ending.code == 1
    assert "the vault is sealed" in ending.err
    assert place.committed() == {f"{place.input}:0": 5}
    assert place.letters() == []


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_an_interrupt_is_a_clean_stop(simple, command):
    running = simple.start(*command, "--json")
    simple.wait_for_notes(20)
    running.signal(signal.SIGINT)
    ending = running.end(20)
    assert ending.code == 0, ending.err
    assert ending.receipt["exit"] == 0
