"""Retention that passes a lagging group: told, written down, and only then passed by."""

from dataclasses import replace

from engine.stepped import INPUT, OUT, Shop
from forebay.core.errors import Unavailable
from forebay.core.outcomes import Done
from forebay.core.records import TopicPartition

AT, OTHER = TopicPartition(INPUT, 0), TopicPartition(INPUT, 1)
AWAY = Unavailable("The state database is away for a moment.")


class Ledger:
    """Where gaps are written down, where it is not away."""

    def __init__(self, member) -> None:
        self.gaps = []
        self.trouble = None
        intake = member.loop._intake
        intake._doors = replace(intake._doors, expired=self.write)

    def write(self, gap) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.gaps.append((gap.at, gap.from_offset, gap.to_offset))


def passed_by(shop: Shop):
    """Of the first partition's five records two are gone before the group reads them."""
    first = shop.member()
    first.step(2)
    first.consumer.inner.close()
    shop.produce(*[b"%d" % number for number in range(5)], partition=0)
    shop.produce(b"other", partition=1)
    shop.broker.admin().trim({AT: 2})
    member = shop.member()
    return member, Ledger(member)


def shop_of_two() -> Shop:
    return Shop(lambda record: Done({OUT: record.value}), partitions=2)


def test_a_gap_is_written_down_counted_and_passed_by():
    shop = shop_of_two()
    member, ledger = passed_by(shop)
    member.run_until_idle()
    assert ledger.gaps == [(AT, 0, 2)]
    assert sorted(shop.values(OUT)) == [b"2", b"3", b"4", b"other"]
    assert (shop.committed(0), member.loop.counters.expired) == (5, 2)
    assert not member.loop.health(0).is_well, "somebody has to look at it"


def test_a_gap_that_cannot_be_written_down_is_not_passed_by_and_others_go_on():
    """It was passed by all the same, and no audit could tell of it."""
    shop = shop_of_two()
    member, ledger = passed_by(shop)
    ledger.trouble = AWAY
    member.step(20, seconds=0.5)
    assert (shop.values(OUT), shop.committed(0), shop.committed(1)) == ([b"other"], 0, 1)
    assert str(AWAY) in member.loop._reasons()
    assert not member.loop.is_idle
    ledger.trouble = None
    member.run_until_idle()
    assert ledger.gaps == [(AT, 0, 2)]
    assert (sorted(shop.values(OUT)), shop.committed(0)) == ([b"2", b"3", b"4", b"other"], 5)
    assert member.loop.counters.expired == 2
    assert str(AWAY) not in member.loop._reasons()


def test_a_gap_of_a_partition_that_left_is_its_next_owners_to_write_down():
    shop = shop_of_two()
    member, ledger = passed_by(shop)
    ledger.trouble = AWAY
    member.step(4, seconds=0.5)
    member.loop.lost([AT, OTHER])
    ledger.trouble = None
    member.step(4, seconds=0.5)
    assert ledger.gaps == []
    assert not member.loop._intake.is_starting


def test_a_commit_that_failed_for_a_partition_that_left_is_nobodys_trouble_any_more():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member()
    member.consumer.failing = {"start_commit": AWAY}
    member.step(10, seconds=1)
    assert str(AWAY) in member.loop._reasons()
    member.loop.lost([AT])
    member.consumer.failing = {}
    member.step(10, seconds=1)
    assert member.loop._reasons() == ()


def test_a_topic_that_refused_what_has_left_is_nobodys_trouble_any_more():
    shop = Shop(lambda record: Done({OUT: record.value}))
    shop.broker.refuse_writes(OUT)
    shop.produce(b"1")
    member = shop.member()
    member.step(5, seconds=1)
    assert member.loop._reasons() != ()
    member.loop.lost([AT])
    member.step(5, seconds=5)
    assert (member.loop._reasons(), member.loop._settler.open) == ((), 0)
