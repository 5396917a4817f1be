"""Where a sink begins: where its store stands, and never by a silent seek."""

import pytest

from engine.depot import GROUP, SALES, Depot, SteppedSink, row_of
from forebay.core.batches import BatchRule
from forebay.core.errors import Unavailable
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.payloads import Undecodable

AT = TopicPartition(SALES, 0)
AWAY = Unavailable("The store is away for a moment.")
EVERY = {"batch": BatchRule(1, 0.0)}


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


# Where it begins.


def test_the_stores_position_counts_whatever_the_group_committed():
    depot = Depot()
    depot.produce(*numbers(1, 6))
    depot.member().run_until_idle()
    depot.broker._store.group(GROUP).committed[AT] = CommittedOffset(1)
    depot.broker._store.group(GROUP).members.clear()
    depot.broker._store.group(GROUP).owners.clear()
    depot.produce(*numbers(7, 9))
    depot.member().run_until_idle()
    assert depot.stored == numbers(1, 9)


def away_from_the_log(depot: Depot, position: int) -> SteppedSink:
    """Partition 0 of two is where the log is not."""
    depot.produce(*numbers(1, 4), partition=0)
    depot.produce(*numbers(11, 13), partition=1)
    probe = depot.member()
    probe.run_until_idle()
    source = next(source for source in depot.store.positions if source.partition == 0)
    probe.consumer.inner.close()
    depot.store.positions[source] = position
    depot.produce(*numbers(14, 16), partition=1)
    member = depot.member()
    member.step(20, seconds=0.5)
    return member


def test_a_position_beyond_the_end_is_held_with_a_sentence_and_others_go_on():
    depot = Depot(partitions=2)
    member = away_from_the_log(depot, 9)
    (reason,) = member.health.reasons
    assert all(word in reason for word in ("sales[0]", "9", "4"))
    assert sorted(depot.stored) == sorted([*numbers(1, 4), *numbers(11, 16)])
    assert member.loop.counters.delivered == 3, "nothing of it is read"


def test_a_position_that_retention_passed_is_held_and_never_sought_silently():
    depot = Depot(partitions=2)
    depot.produce(*numbers(1, 4), partition=0)
    first = depot.member()
    first.run_until_idle()
    first.consumer.inner.close()
    depot.produce(*numbers(5, 8), partition=0)
    depot.produce(*numbers(11, 13), partition=1)
    depot.admin.trim({AT: 6})
    member = depot.member()
    member.step(20, seconds=0.5)
    assert sorted(depot.stored) == sorted([*numbers(1, 4), *numbers(11, 13)])
    assert depot.positions == {0: 4, 1: 3}
    assert any("sales[0]" in reason for reason in member.health.reasons)
    assert "partition.expired" not in member.said
    assert not member.loop.is_idle


def test_retention_that_passes_a_running_sink_takes_nothing_of_what_it_has_read():
    depot = Depot(batch=BatchRule(3, 5.0, records_max=3))
    depot.produce(*numbers(1, 3))
    member = depot.member()
    member.writer.runs_at_once = False
    member.step(3)
    depot.produce(*numbers(4, 9))
    depot.admin.trim({AT: 6})
    member.step(2)
    member.writer.runs_at_once = True
    member.writer.finish()
    member.step(20, seconds=0.5)
    assert (depot.stored, depot.positions) == (["1", "2", "3"], {0: 3})
    assert any("sales[0]" in reason for reason in member.health.reasons)


def test_a_position_that_a_person_moved_is_gone_on_from():
    depot = Depot(partitions=2)
    member = away_from_the_log(depot, 9)
    source = next(source for source in depot.store.positions if source.partition == 0)
    depot.store.positions[source] = 4
    depot.produce(5, partition=0)
    member.run_until_idle()
    assert (depot.stored[-1], depot.positions[0], member.health.reasons) == ("5", 5, ())


def test_a_topic_that_was_made_again_begins_at_its_beginning_whatever_the_old_one_reached():
    depot = Depot()
    depot.produce(*numbers(1, 6))
    first = depot.member()
    first.run_until_idle()
    first.consumer.inner.close()
    depot.admin.delete_topic(SALES)
    depot.admin.create_topic(TopicSpec(SALES))
    depot.produce("a", "b")
    depot.member().run_until_idle()
    assert (depot.stored, depot.positions) == ([*numbers(1, 6), "a", "b"], {0: 2})


def test_a_topic_that_is_made_again_under_a_running_sink_loses_and_mixes_nothing():
    depot = Depot()
    depot.produce(1, 2)
    member = depot.member()
    member.step(2)
    depot.admin.delete_topic(SALES)
    depot.admin.create_topic(TopicSpec(SALES))
    depot.produce("a", "b", "c", "d")
    member.run_until_idle()
    assert [row for row in depot.stored if row.isalpha()] == ["a", "b", "c", "d"]
    assert depot.positions == {0: 4}


def test_a_store_that_is_away_at_the_start_is_waited_for():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member()
    member.outage(AWAY)
    member.step(10, seconds=0.5)
    assert (member.health.reasons, depot.stored) == ((str(AWAY),), [])
    member.outage(None)
    member.run_until_idle()
    assert depot.stored == ["1", "2", "3"]


def test_an_undecodable_null_is_a_dead_letter_without_a_value():
    depot = Depot(**EVERY)
    depot.produce(None)
    depot.member().run_until_idle()
    assert depot.letters() == [None]
    with pytest.raises(Undecodable):
        row_of(Record(None))
