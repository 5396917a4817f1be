"""Messages and processors that nobody wishes for."""

import sys
import threading

import pytest

from forebay.testing import eventually

VALUES = [
    None,
    b"",
    b"\xff\xfe\x00\x80",
    b'{"quoted": "a,b"}\n"',
    b"nul \x00 in it",
    b"tab\tand\r\nlines\n",
    "ünïcödé ✓".encode(),
    b"\xef\xbb\xbfwith a mark",
]


def fail(_value):
    raise ValueError('it says "no",\nand more')


def test_every_kind_of_value_and_key_comes_back_byte_for_byte_from_both_files(mod):
    for value in VALUES:
        mod.produce([value], key=value)
    with mod.running(fail):
        eventually(lambda: len(mod.letters) == len(VALUES))
    assert {(letter.record.value, letter.record.key) for letter in mod.letters} == {
        (value, value) for value in VALUES
    }
    assert {letter.reason for letter in mod.letters} == {'it says "no",\nand more'}
    assert mod.committed() == len(VALUES)


class Evil(Exception):
    def __str__(self):
        raise RuntimeError("no words")

    @property
    def category(self):
        raise RuntimeError("no category either")


@pytest.mark.parametrize(
    "raised", [SystemExit(3), GeneratorExit(), Evil(), ValueError("x" * 100_000)]
)
def test_whatever_a_processor_raises_is_a_failure_and_the_worker_goes_on(mod, raised):
    mod.produce([b"1", b"2"])
    done = []

    def process(value):
        if value == b"1":
            raise raised
        done.append(value)

    run = mod.start(process, worker_count=1)
    eventually(lambda: mod.letters and done == [b"2"])
    assert run.stop().metrics == run.ended.metrics
    assert mod.letters[0].error_type == type(raised).__name__
    assert mod.committed() == 2


@pytest.mark.parametrize(("raised", "code"), [(MemoryError, 30), (KeyboardInterrupt, 50)])
def test_what_stops_a_process_stops_the_consumer_and_leaves_its_message(mod, raised, code):
    mod.produce([b"1"])

    def process(value):
        raise raised

    ended = mod.start(process).end()
    assert (ended.exit_code, ended.status) == (code, "error")
    assert raised.__name__ in ended.errors[0]
    assert mod.letters == []
    assert mod.committed() == 0


def test_a_processor_that_leaks_threads_does_not_keep_the_consumer(mod):
    mod.produce([b"%d" % number for number in range(20)])
    release = threading.Event()

    def process(_value):
        threading.Thread(target=release.wait, args=(30,), daemon=True).start()

    run = mod.start(process)
    eventually(lambda: len(run.said("mod.message_processed")) == 20)
    assert run.stop().exit_code == 0
    release.set()


def test_too_many_workers_that_never_return_make_the_run_a_failure(mod):
    mod.produce([b"1", b"2"])
    release = threading.Event()
    run = mod.start(lambda _value: release.wait(60), processing_timeout=1, worker_count=2)
    run.wait_for("mod.workers_stuck")
    eventually(lambda: len(mod.letters) == 2)
    ended = run.stop()
    release.set()
    assert ended.exit_code == 30
    assert "did not return within processing_timeout" in ended.errors[0]


def test_a_deep_recursion_is_a_failure_with_its_stack(mod):
    mod.produce([b"1"])

    def process(value, depth=0):
        return process(value, depth + 1)

    with mod.running(process):
        eventually(lambda: mod.letters)
    assert mod.letters[0].error_type == "RecursionError"
    assert "in process" in mod.letters[0].stack


def test_a_topic_that_does_not_exist_yet_is_said_and_waited_for(mod):
    run = mod.start(topics=["later"])
    run.wait_for("mod.topic_missing")
    mod.create("later")
    mod.produce([b"1"], "later")
    mod.wait_for(1)
    run.stop()


def test_in_dev_mode_too_a_topic_is_waited_for(mod):
    run = mod.start(topics=["later"], dev_mode=True)
    run.wait_for("mod.waiting")
    mod.create("later")
    mod.produce([b"1"], "later")
    mod.wait_for(1)
    run.stop()


def test_a_wait_for_a_topic_can_be_ended(mod):
    run = mod.start(topics=["never"], dev_mode=True)
    run.wait_for("mod.waiting")
    assert run.stop(20).exit_code == 0
    assert run.said("mod.shutdown_complete")


def test_the_switch_interval_of_the_caller_is_put_back(mod):
    before = sys.getswitchinterval()
    run = mod.start()
    run.wait_for("mod.all_started")
    run.stop()
    assert sys.getswitchinterval() == before
