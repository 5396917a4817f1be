"""The sink loop while its store is away, others write to it, and partitions come and go."""

import pytest

from engine.depot import LETTERS, SALES, AfterAll, Depot, ScriptedSink
from forebay.core.batches import BatchRule
from forebay.core.errors import Fenced, Full, OutcomeUnknown, Unavailable, Unusable
from forebay.core.records import TopicPartition

AT = TopicPartition(SALES, 0)
AWAY = Unavailable("The store is away for a moment.")
UNKNOWN = OutcomeUnknown("The store did not answer.")


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


# A store that is away, or does not say what it did.


@pytest.mark.parametrize("error", [AWAY, Full("The disk is full."), Unusable("The key expired.")])
def test_an_outage_holds_says_so_and_is_over_by_itself(error):
    depot = Depot()
    depot.produce(*numbers(1, 4))
    member = depot.member()
    member.step(2)
    member.outage(error)
    depot.produce(*numbers(5, 8))
    member.step(60, seconds=0.5)
    assert str(error) in member.health.reasons
    assert depot.letters() == []
    member.outage(None)
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (numbers(1, 8), {0: 8})
    assert member.health.is_well


def test_an_outage_is_asked_about_less_and_less_often():
    depot = Depot()
    member = depot.member()
    member.step()
    depot.produce(1, 2, 3)
    member.outage(AWAY)
    member.sink.calls.clear()
    member.step(600, seconds=0.1)
    assert 6 <= len(member.sink.calls) <= 14


def test_after_an_unknown_outcome_the_position_is_asked_and_nothing_is_stored_twice():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member()
    member.sink.answers.append(AfterAll(UNKNOWN))
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (["1", "2", "3"], {0: 3})
    assert member.sink.calls == ["position", "commit", "position"]


def test_a_store_that_fails_in_a_way_nobody_foresaw_is_held_like_one_that_is_away():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member()
    member.sink.answers.extend([ZeroDivisionError("inside the driver"), AfterAll(OSError("disk"))])
    member.step(3)
    assert any("ZeroDivisionError" in reason for reason in member.health.reasons)
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (["1", "2", "3"], {0: 3})


# Somebody else writes.


def test_who_was_fenced_begins_again_where_the_store_stands():
    depot = Depot()
    depot.produce(*numbers(1, 6))
    member = depot.member()
    member.writer.runs_at_once = False
    member.step(2)
    other = ScriptedSink(depot.store)
    (source,) = member.loop._starts.sources.values()
    other.commit([{"id": "1", "amount": 1}, {"id": "2", "amount": 1}], {source: 2})
    member.writer.runs_at_once = True
    member.writer.finish()
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (numbers(1, 6), {0: 6})


def test_who_was_fenced_with_a_full_memory_is_not_paused_for_ever():
    depot = Depot(batch=BatchRule(3, 5.0, records_max=100))
    depot.produce(*numbers(1, 300))
    member = depot.member()
    member.writer.runs_at_once = False
    member.step(5)
    assert member.loop.held[AT].is_paused
    member.sink.answers.append(Fenced("Another writer was here."))
    member.writer.runs_at_once = True
    member.writer.finish()
    member.run_until_idle()
    assert depot.stored == numbers(1, 300)


def test_who_was_fenced_because_its_partition_moved_does_not_claim_it_back():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member()
    member.writer.runs_at_once = False
    member.step(2)
    (source,) = member.loop._starts.sources.values()
    member.expel()
    other = depot.member()
    other.step()
    other.sink.commit([{"id": "1", "amount": 1}], {source: 1})
    member.step()
    member.writer.finish()
    for _ in range(20):
        member.step(seconds=0.5)
        other.step()
    assert depot.stored == ["1", "2", "3"]
    assert (member.health.is_well, member.loop.is_idle) == (True, True)


def test_who_is_fenced_while_it_gives_a_partition_back_does_not_wait_for_it():
    depot = Depot()
    depot.produce(1, 2)
    member = depot.member(drain_seconds=30)
    member.step(2)
    member.sink.answers.append(Fenced("Another writer was here."))
    began_at = depot.clock.monotonic()
    member.consumer.inner.close()
    assert depot.clock.monotonic() - began_at < 1
    depot.member().run_until_idle()
    assert depot.stored == ["1", "2"]


# Partitions come and go.


def test_who_gives_a_partition_back_stores_what_it_has_read():
    depot = Depot()
    depot.produce(1, 2)
    member = depot.member()
    member.step(2)
    member.consumer.inner.close()
    assert (depot.stored, depot.positions, depot.committed()) == (["1", "2"], {0: 2}, 2)


def test_who_has_lost_a_partition_stores_nothing_more_of_it():
    depot = Depot()
    depot.produce(1, 2)
    member = depot.member()
    member.step(2)
    member.loop.lost([AT])
    member.step(10, seconds=1)
    assert (depot.stored, member.health.unresolved, member.health.bytes_held) == ([], 0, 0)


def test_what_a_store_that_was_away_held_of_a_lost_partition_is_not_stored_twice():
    depot = Depot()
    depot.produce(*numbers(1, 3))
    member = depot.member()
    member.outage(None)
    member.sink.answers.extend([AWAY, AWAY])
    member.step(2)
    member.expel()
    depot.produce(*numbers(4, 7))
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (numbers(1, 7), {0: 7})


def test_a_partition_that_comes_back_while_its_batch_is_still_written_is_not_stored_twice():
    depot = Depot()
    depot.produce(*numbers(1, 3))
    member = depot.member()
    member.writer.runs_at_once = False
    member.step(2)
    member.expel()
    depot.produce(*numbers(4, 7))
    member.step(3, seconds=0.6)
    member.writer.runs_at_once = True
    member.writer.finish()
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (numbers(1, 7), {0: 7})


def test_a_poll_does_not_wait_for_the_store_when_a_partition_comes():
    depot = Depot(partitions=2)
    depot.produce(1, 2, 3)
    first = depot.member()
    first.step(2)
    second = depot.member()
    for _ in range(4):
        second.step()
        first.step()
    first.writer.runs_at_once = False
    depot.produce(4, 5, 6, partition=0)
    depot.produce(7, 8, 9, partition=1)
    first.step(3)
    assert first.writer.pending is not None
    second.consumer.inner.close()
    first.sink.calls.clear()
    first.step(3, seconds=0.1)
    assert first.sink.calls == [], "the store is busy, and would be waited for"
    first.writer.runs_at_once = True
    first.writer.finish()
    first.run_until_idle()
    assert sorted(depot.stored) == numbers(1, 9)


def test_a_handover_while_the_store_is_away_stores_nothing_and_loses_nothing():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member(drain_seconds=30)
    member.sink.answers.append(AWAY)
    member.step(2)
    began_at = depot.clock.monotonic()
    member.consumer.inner.close()
    assert depot.clock.monotonic() - began_at < 1
    assert depot.stored == []
    depot.member().run_until_idle()
    assert (depot.stored, depot.positions) == (["1", "2", "3"], {0: 3})


def test_what_was_being_buried_of_a_partition_that_left_is_forgotten():
    depot = Depot()
    depot.broker.refuse_writes(LETTERS)
    depot.produce("bad", "bad")
    member = depot.member()
    member.step(3)
    member.loop.lost([AT])
    depot.broker.accept_writes(LETTERS)
    member.step(10, seconds=1)
    assert (len(member.loop._burying), member.loop._settler.open) == (0, 0)


def test_a_batch_that_is_tried_again_after_another_writer_was_there_is_not_stored_twice():
    """Asking for the position told the sink to expect it, and it took the whole batch."""
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member()
    member.sink.answers.append(AWAY)
    member.step(2)
    (source,) = member.loop._starts.sources.values()
    other = ScriptedSink(depot.store)
    other.commit([{"id": "1", "amount": 1}, {"id": "2", "amount": 1}], {source: 2})
    member.run_until_idle()
    assert (depot.stored, depot.positions) == (["1", "2", "3"], {0: 3})


def test_trouble_with_what_has_left_is_nobodys_trouble_any_more():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member()
    member.sink.answers.append(AWAY)
    member.step(2)
    assert member.health.reasons == (str(AWAY),)
    member.loop.lost([AT])
    assert member.health.is_well


def test_a_broker_that_refuses_the_whole_producer_holds_and_does_not_end_the_sink():
    depot = Depot(batch=BatchRule(1, 0.0))
    depot.broker.refuse_writes(LETTERS)
    depot.produce("bad")
    member = depot.member()
    member.step(2)
    member.producer.failing = {"poll": AWAY}
    member.step(20, seconds=0.5)
    assert str(AWAY) in member.health.reasons
    member.producer.failing = {}
    depot.broker.accept_writes(LETTERS)
    member.run_until_idle()
    assert (depot.letters(), depot.positions, member.health.reasons) == ([b"bad"], {0: 1}, ())
