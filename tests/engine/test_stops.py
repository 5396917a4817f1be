"""A stage that was told where to end, and a broker that takes nothing at all."""

import pytest

from engine.stepped import INPUT, LETTERS, OUT, Shop
from forebay.core.errors import AccessDenied
from forebay.core.outcomes import Done
from forebay.core.records import TopicPartition
from forebay.engine.doors import LoopOptions

AT = TopicPartition(INPUT, 0)
DENIED = AccessDenied("This user may not connect.")


def test_a_stop_is_exclusive_and_ends_the_stage():
    handled = []
    shop = Shop(lambda record: handled.append(record.offset))
    shop.produce(*[b"x"] * 10)
    member = shop.member(LoopOptions(stops={AT: 4}))
    member.step(5)
    assert (handled, shop.committed(), member.loop.is_over) == ([0, 1, 2, 3], 4, True)


def test_a_stop_that_was_reached_before_ends_the_stage_without_work():
    shop = Shop()
    shop.produce(*[b"x"] * 10)
    shop.member(LoopOptions(stops={AT: 4})).step(5)
    shop.broker._store.group(shop.route.group).members.clear()
    shop.broker._store.group(shop.route.group).owners.clear()
    member = shop.member(LoopOptions(stops={AT: 4}))
    member.step(5)
    assert (member.loop.counters.handled, shop.committed(), member.loop.is_over) == (0, 4, True)


def test_a_stop_beyond_the_end_is_waited_for():
    shop = Shop()
    shop.produce(b"1", b"2")
    member = shop.member(LoopOptions(stops={AT: 4}))
    member.step(20, seconds=1)
    assert not member.loop.is_over
    shop.produce(b"3", b"4", b"5")
    member.step(5)
    assert (shop.committed(), member.loop.is_over) == (4, True)


@pytest.mark.parametrize("at", [TopicPartition("returns", 0), TopicPartition(INPUT, 7)])
def test_a_stop_of_a_partition_that_is_not_read_here_ends_nothing(at):
    """A stage that had nothing to do with it was over at once, and ended the whole run."""
    shop = Shop()
    shop.produce(b"1")
    member = shop.member(LoopOptions(stops={at: 4}))
    member.step(20, seconds=1)
    assert (shop.committed(), member.loop.is_over) == (1, False)


def test_partitions_without_a_stop_go_on_until_the_others_have_reached_theirs():
    shop = Shop(partitions=2)
    shop.produce(*[b"x"] * 3, partition=0)
    shop.produce(*[b"x"] * 5, partition=1)
    member = shop.member(LoopOptions(stops={AT: 2}))
    member.step(5)
    assert (shop.committed(0), shop.committed(1), member.loop.is_over) == (2, 5, True)


def test_a_broker_that_refuses_the_whole_producer_holds_and_does_not_end_the_stage():
    shop = Shop(lambda record: Done({OUT: record.value}))
    shop.produce(b"1")
    shop.broker.refuse_writes(OUT)
    member = shop.member()
    member.step(2)
    member.producer.failing = {"poll": DENIED}
    member.step(20, seconds=0.5)
    assert str(DENIED) in member.loop._reasons()
    assert shop.committed() == 0
    member.producer.failing = {}
    shop.broker.accept_writes(OUT)
    member.run_until_idle()
    assert (shop.committed(), shop.values(OUT), shop.values(LETTERS)) == (1, [b"1"], [])
    assert member.loop._reasons() == ()
