"""A thread that drives a loop: builds it, steps it, tells of it, and closes what it opened."""

import threading

import pytest

from forebay.engine.doors import Wait
from forebay.engine.health import StageHealth
from forebay.engine.threads import LoopThread
from forebay.observability.clock import SystemClock
from forebay.testing import eventually


class Counting:
    """A loop that counts its steps, and is over when it was told to stop."""

    def __init__(self, fails_at=None, stops=1):
        self.stops = stops
        self.steps = self.rests = self.looked = 0
        self.fails_at = fails_at
        self.is_over = False
        self.left_behind = 0
        self.deadlines = []
        self.thread = None

    def start(self):
        self.thread = threading.current_thread().name

    def step(self, now):
        self.steps += 1
        if self.steps == self.fails_at:
            raise ZeroDivisionError
        self.is_over = len(self.deadlines) >= self.stops
        return Wait("records", 0.001)

    def rest(self, wait):
        self.rests += 1
        threading.Event().wait(wait.seconds)

    def stop(self, deadline):
        self.deadlines.append(deadline)

    def health(self, now):
        self.looked += 1
        return StageHealth(
            stage="counting",
            group="",
            kind="record",
            unresolved=self.steps,
            bytes_held=0,
            running=0,
            stuck=0,
            oldest_seconds=0.0,
            next_due_ms=None,
            is_idle=True,
            is_stopping=False,
            reasons=(),
            partitions=(),
        )


class Driven:
    def __init__(self, loop, *, fails_to_build=False):
        self.loop = loop
        self.closed = []
        self._fails = fails_to_build
        self.thread = LoopThread("driven", self.build, SystemClock())

    def build(self, closing):
        closing.callback(self.closed.append, "producer")
        if self._fails:
            raise ConnectionRefusedError
        closing.callback(self.closed.append, "consumer")
        return self.loop

    def ended(self):
        return self.thread.join(5.0)


@pytest.fixture
def driven():
    driven = Driven(Counting())
    driven.thread.start()
    yield driven
    driven.thread.stop(0.0)
    assert driven.ended()


def test_a_loop_is_built_and_driven_in_its_own_thread(driven):
    eventually(lambda: driven.loop.steps > 5)
    assert driven.loop.thread == "driven"
    assert driven.thread.is_alive
    assert not driven.thread.is_over


def test_a_stop_is_passed_on_once_and_what_was_opened_is_closed_in_turn(driven):
    driven.thread.stop(7.0)
    assert driven.ended()
    assert driven.loop.deadlines == [7.0]
    assert (driven.closed, driven.thread.is_over) == (["consumer", "producer"], True)


def test_a_second_stop_with_another_time_is_passed_on_too():
    driven = Driven(Counting(stops=2))
    driven.thread.stop(9.0)
    driven.thread.start()
    eventually(lambda: driven.loop.deadlines)
    driven.thread.stop(3.0)
    assert driven.ended()
    assert driven.loop.deadlines == [9.0, 3.0]


def test_the_last_that_is_told_is_how_it_ended(driven):
    eventually(lambda: driven.thread.health)
    driven.thread.stop(0.0)
    assert driven.ended()
    assert driven.thread.health.unresolved == driven.loop.steps


def test_a_loop_is_not_looked_at_after_every_step(driven):
    eventually(lambda: driven.loop.steps > 20)
    assert driven.loop.looked <= 1 + driven.loop.steps // 10


def test_a_loop_that_is_over_does_not_rest(driven):
    eventually(lambda: driven.loop.steps > 2)
    driven.thread.stop(0.0)
    assert driven.ended()
    assert driven.loop.rests == driven.loop.steps - 1


def test_what_a_loop_raises_is_kept_and_what_was_opened_is_closed():
    driven = Driven(Counting(fails_at=3))
    driven.thread.start()
    assert driven.ended()
    assert isinstance(driven.thread.failure, ZeroDivisionError)
    assert (driven.closed, driven.thread.is_over) == (["consumer", "producer"], True)


def test_a_loop_that_cannot_be_built_is_a_failure_and_leaves_nothing_open():
    driven = Driven(Counting(), fails_to_build=True)
    driven.thread.start()
    assert driven.ended()
    assert isinstance(driven.thread.failure, ConnectionRefusedError)
    assert (driven.closed, driven.thread.health) == (["producer"], None)
