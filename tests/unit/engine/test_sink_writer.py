"""The thread that writes: it always answers, and is never written past."""

import threading

import pytest

from forebay.core.errors import Closed, Fenced, ForebayError, Unavailable
from forebay.core.sinks import SourcePartition
from forebay.engine.sink_writer import (
    Flush,
    InlineSinkWriter,
    ThreadSinkWriter,
    TurnTaking,
    carry_out,
)
from forebay.testing import eventually
from forebay.testing.memory_sink import MemorySink

A = SourcePartition("orders", 0, "i1")


def flush(*rows, to, since=None, is_repeat=False):
    return Flush(list(rows), {A: to}, {A: since}, is_repeat)


class Failing(MemorySink):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def commit(self, rows, next_offsets):
        raise self.error


class Slow(MemorySink):
    """Its commit lasts until it is let go."""

    def __init__(self):
        super().__init__()
        self.begun, self.go = threading.Event(), threading.Event()
        self.closed_while_open = None

    def commit(self, rows, next_offsets):
        self.begun.set()
        self.go.wait(5)
        super().commit(rows, next_offsets)

    def close(self):
        self.closed_while_open = self.begun.is_set() and not self.rows


@pytest.fixture
def writer_of():
    writers = []

    def make(sink):
        writers.append(ThreadSinkWriter(sink, "test"))
        return writers[-1]

    yield make
    for writer in writers:
        writer.close()


def test_a_flush_is_stored_and_answered(writer_of):
    sink = MemorySink()
    writer = writer_of(sink)
    writer.submit(flush("a", "b", to=2))
    (answer,) = eventually(lambda: list(writer.finished))
    assert (answer.error, sink.rows, answer.flush.next_offsets) == (None, ["a", "b"], {A: 2})


@pytest.mark.parametrize("error", [Unavailable("away"), ZeroDivisionError(), OSError("disk")])
def test_whatever_a_sink_raises_is_an_answer_and_the_writer_lives_on(writer_of, error):
    """A thread that died left its stage waiting for ever, and nobody was told."""
    sink = Failing(error)
    writer = writer_of(sink)
    for _ in range(2):
        writer.submit(flush("a", to=1))
        eventually(lambda: writer.finished)
        assert isinstance(writer.finished.popleft().error, ForebayError)


def test_who_waits_is_woken_by_the_answer(writer_of):
    sink = Slow()
    writer = writer_of(sink)
    writer.submit(flush("a", to=1))
    threading.Timer(0.02, sink.go.set).start()
    writer.wait(10)
    assert eventually(lambda: writer.finished)


def test_a_repeat_of_what_was_stored_is_not_stored_again():
    sink = MemorySink()
    sink.commit(["a"], {A: 1})
    assert carry_out(sink, flush("a", to=1, is_repeat=True)).error is None
    assert sink.rows == ["a"]


def test_a_repeat_of_what_was_not_stored_is_stored():
    sink = MemorySink()
    sink.commit(["a"], {A: 1})
    assert carry_out(sink, flush("b", to=2, since=1, is_repeat=True)).error is None
    assert sink.rows == ["a", "b"]


def test_a_repeat_over_a_position_that_somebody_moved_is_fenced():
    sink = MemorySink()
    sink.commit(["a"], {A: 1})
    answer = carry_out(sink, flush("a", "b", to=2, is_repeat=True))
    assert isinstance(answer.error, Fenced)
    assert sink.rows == ["a"]


def test_a_sink_is_not_closed_under_a_commit_that_runs():
    """The number of its file may be another file's by the time it is written to."""
    sink = Slow()
    taking_turns = TurnTaking(sink)
    committing = threading.Thread(target=taking_turns.commit, args=(["a"], {A: 1}))
    committing.start()
    assert sink.begun.wait(5)
    closing = threading.Thread(target=taking_turns.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    sink.go.set()
    committing.join(5)
    closing.join(5)
    assert sink.closed_while_open is False


def test_a_sink_that_was_closed_is_not_opened_again_by_a_late_batch():
    sink = MemorySink()
    taking_turns = TurnTaking(sink)
    taking_turns.close()
    answer = carry_out(taking_turns, flush("a", to=1))
    assert isinstance(answer.error, Closed)
    with pytest.raises(Closed):
        taking_turns.position([A])
    assert sink.rows == []


def test_an_inline_writer_has_its_answer_at_once():
    writer = InlineSinkWriter(MemorySink())
    writer.submit(flush("a", to=1))
    assert len(writer.finished) == 1
