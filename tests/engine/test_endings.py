"""How a stage ends that was told to drain its queue, or to leave its last commit out."""

import pytest

from engine.stepped import Shop
from forebay.core.retries import RetryPolicy
from forebay.engine.doors import LoopOptions


def end(member):
    member.executor.runs_at_once = True
    member.executor.finish_all()
    member.step(5)


@pytest.mark.parametrize(("drains", "handled"), [(True, 50), (False, 1)])
def test_a_queue_that_is_to_be_drained_is_handled_before_the_end(drains, handled):
    shop = Shop(stage_options={"timeout_seconds": None})
    for number in range(50):
        shop.produce(b"x", key=b"%d" % number)
    member = shop.member(LoopOptions(drains_queue=drains, drain_seconds=30), runs_at_once=False)
    member.step(2)
    running = member.executor.begin()
    member.loop.stop(member.clock.monotonic() + 30)
    member.step(2)
    assert not member.loop.is_over
    member.executor.end(*running)
    end(member)
    assert (member.loop.is_over, shop.committed()) == (True, handled)


def test_a_queue_that_is_not_drained_in_time_is_left_for_the_next_start():
    handled = []
    shop = Shop(
        lambda record: handled.append(record.offset), stage_options={"timeout_seconds": None}
    )
    for number in range(50):
        shop.produce(b"x", key=b"%d" % number)
    member = shop.member(LoopOptions(drains_queue=True, drain_seconds=5), runs_at_once=False)
    member.step(2)
    member.executor.begin()
    member.loop.stop(member.clock.monotonic() + 5)
    member.step(7, seconds=1)
    assert (member.loop.is_over, shop.committed()) == (True, 0)
    member.executor.finish_all()
    assert handled == []


def test_what_stops_a_stage_does_not_drain_its_queue_first():
    handled = []

    def handle(record):
        handled.append(record.offset)
        raise MemoryError

    shop = Shop(handle)
    for number in range(50):
        shop.produce(b"x", key=b"%d" % number)
    member = shop.member(LoopOptions(drains_queue=True), runs_at_once=False)
    member.step(2)
    running = member.executor.begin()
    member.executor.end(*running)
    member.step(1)
    end(member)
    assert (handled, member.loop.is_over, shop.committed()) == ([0], True, 0)


def test_a_stop_without_a_last_commit_leaves_what_was_done_to_be_done_again():
    shop = Shop(stage_options={"commit_seconds": 300.0, "retry": RetryPolicy(())})
    shop.produce(b"1", b"2")
    options = LoopOptions(commits_at_end=False, commits_when_idle_after_seconds=300.0)
    member = shop.member(options)
    member.step(1)
    committed = shop.committed()
    member.step(1)
    member.loop.stop(member.clock.monotonic() + 5)
    member.step(3)
    member.consumer.close()
    assert member.loop.is_over
    assert shop.committed() == committed


def test_a_rebalance_waits_no_longer_than_it_may_whatever_a_stop_may_take():
    shop = Shop(partitions=2, stage_options={"timeout_seconds": None})
    shop.produce(b"x", partition=0)
    shop.produce(b"x", partition=1)
    options = LoopOptions(drain_seconds=300, revoke_seconds=20)
    first = shop.member(options, runs_at_once=False)
    first.step(2)
    first.executor.begin()
    first.executor.begin()
    second = shop.member()
    second.step(1)
    begun_at = shop.clock.monotonic()
    first.step(2)
    assert 20 <= shop.clock.monotonic() - begun_at < 25
