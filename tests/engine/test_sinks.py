"""The sink loop: batches in order, one at a time, and nothing of it lost or stored twice."""

import pytest

from engine.depot import LETTERS, SALES, AfterAll, Depot, row_of
from forebay.core.batches import BatchRule
from forebay.core.envelope import read_envelope
from forebay.core.errors import OutcomeUnknown, RowsRefused, Unavailable
from forebay.core.outcomes import Reject
from forebay.core.records import Record, TopicPartition

AT = TopicPartition(SALES, 0)
AWAY = Unavailable("The store is away for a moment.")
UNKNOWN = OutcomeUnknown("The store did not answer.")
EVERY = {"batch": BatchRule(1, 0.0)}


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


# When a batch is cut.


def test_a_batch_is_cut_at_its_size():
    depot = Depot()
    member = depot.member()
    depot.produce(1, 2)
    member.step(5)
    assert depot.stored == []
    depot.produce(3)
    member.step(2)
    assert (depot.stored, member.batches) == (["1", "2", "3"], [3])


def test_a_batch_is_cut_at_its_age_however_small():
    depot = Depot()
    member = depot.member()
    member.step(2)
    member.step(3, seconds=10)
    depot.produce(1)
    member.step()
    member.step(9, seconds=0.5)
    assert depot.stored == []
    member.step(2, seconds=0.5)
    assert depot.stored == ["1"]


def test_a_batch_is_cut_at_its_bytes():
    depot = Depot(batch=BatchRule(100, 5.0, bytes_max=1_000))
    depot.produce("x" * 600, "y" * 600)
    member = depot.member()
    member.step(3)
    assert member.batches == [2]


def test_there_are_never_two_batches_at_once_and_a_slow_store_gets_larger_ones():
    depot = Depot()
    member = depot.member()
    member.writer.takes_seconds = 10
    for number in range(200):
        depot.produce(number)
        member.step(seconds=0.2)
    member.writer.takes_seconds = None
    member.writer.finish()
    member.run_until_idle()
    assert depot.stored == numbers(0, 199)
    assert member.batches[0] == 3
    assert all(40 <= size <= 60 for size in member.batches[1:4])


def test_a_store_that_is_ever_slower_than_its_topic_gets_batches_of_5000():
    depot = Depot(batch=BatchRule(100, 5.0))
    depot.produce(*[b"x"] * 22_000)
    member = depot.member()
    member.writer.takes_seconds = 10
    member.step(60, seconds=1)
    assert member.batches[1:5] == [5_000] * 4


def test_what_is_held_in_memory_is_bounded_and_read_on_later():
    depot = Depot(batch=BatchRule(10, 5.0, records_max=500, bytes_max=10**9))
    depot.produce(*[b"x"] * 5_000)
    member = depot.member()
    member.writer.runs_at_once = False
    member.step(50, seconds=0.1)
    assert member.loop.held.records <= 500 + 2 * 1_000
    assert member.loop.held[AT].is_paused
    member.writer.runs_at_once = True
    member.writer.finish()
    member.run_until_idle()
    assert len(depot.stored) == 5_000


def test_a_store_that_is_away_is_polled_past():
    depot = Depot()
    depot.produce(*numbers(1, 9))
    member = depot.member()
    member.step(2)
    member.outage(AWAY)
    member.consumer.calls.clear()
    member.step(100, seconds=0.2)
    assert member.consumer.calls.count("poll") >= 90


# What a batch holds.


def test_rows_are_stored_in_their_order_with_the_position_they_reach():
    depot = Depot(partitions=2, batch=BatchRule(100, 1.0))
    depot.produce(*numbers(1, 50), partition=0)
    depot.produce(*numbers(101, 150), partition=1)
    member = depot.member()
    member.run_until_idle()
    assert [row for row in depot.stored if len(row) < 3] == numbers(1, 50)
    assert [row for row in depot.stored if len(row) == 3] == numbers(101, 150)
    assert (depot.positions, depot.committed(0), depot.committed(1)) == ({0: 50, 1: 50}, 50, 50)


def test_a_batch_of_nothing_but_skips_moves_the_position():
    depot = Depot()
    depot.produce("skip", "skip", "skip")
    member = depot.member()
    member.run_until_idle()
    assert (depot.stored, depot.positions, depot.committed()) == ([], {0: 3}, 3)
    counters = member.loop.counters
    assert (counters.skipped, counters.handled, counters.emitted) == (3, 3, 0)


def test_what_is_no_row_becomes_a_dead_letter_and_the_position_passes_it_after_that_alone():
    depot = Depot(**EVERY)
    depot.broker.refuse_writes(LETTERS)
    depot.produce(1, "bad", 3)
    member = depot.member()
    member.step(20, seconds=1)
    assert (depot.stored, depot.positions, depot.letters()) == (["1"], {0: 1}, [])
    assert any("refused" in reason for reason in member.health.reasons)
    depot.broker.accept_writes(LETTERS)
    member.run_until_idle()
    assert (depot.stored, depot.positions, depot.letters()) == (["1", "3"], {0: 3}, [b"bad"])


def test_a_dead_letter_that_waits_holds_no_other_partition_up():
    depot = Depot(partitions=2, **EVERY)
    depot.broker.refuse_writes(LETTERS)
    depot.produce("bad", 1, partition=0)
    depot.produce(2, 3, partition=1)
    member = depot.member()
    member.step(10, seconds=1)
    assert (depot.stored, depot.positions) == (["2", "3"], {1: 2})


def test_a_dead_letter_of_a_sink_says_what_was_raised_and_where():
    def fails(record: Record):
        raise ZeroDivisionError("no such price")

    depot = Depot(make_row=fails, **EVERY)
    depot.produce(1)
    depot.member().run_until_idle()
    log = depot.broker._store.log(TopicPartition(LETTERS, 0))
    envelope = read_envelope(log.read(0, 1)[0])
    assert envelope is not None
    assert envelope.failure is not None
    assert envelope.failure.error == "ZeroDivisionError"
    assert "in fails" in envelope.failure.stack
    assert depot.letters() == [b"1"]


def test_a_row_function_may_reject():
    depot = Depot(make_row=lambda record: Reject("no such shop"), **EVERY)
    depot.produce(1)
    depot.member().run_until_idle()
    assert (depot.letters(), depot.positions) == ([b"1"], {0: 1})


def test_what_another_stage_buries_is_left_to_it():
    depot = Depot(leaves_undecodable=True, **EVERY)
    depot.produce(1, "bad", 2)
    member = depot.member()
    member.run_until_idle()
    assert (depot.stored, depot.letters(), member.loop.counters.skipped) == (["1", "2"], [], 1)


@pytest.mark.parametrize("error", [SystemExit(3), MemoryError("no more")])
def test_a_row_function_that_must_not_be_answered_stops_the_stage_and_buries_nothing(error):
    def stops(record: Record):
        if record.value == b"2":
            raise error
        return row_of(record)

    depot = Depot(make_row=stops, batch=BatchRule(100, 5.0))
    depot.produce(1, 2, 3)
    member = depot.member(drain_seconds=30)
    member.step(3, seconds=0.1)
    assert (member.loop.stopped_by, member.loop.is_over) == (error, True)
    assert (depot.letters(), depot.positions.get(0, 0) <= 1) == ([], True)
    assert "stage.stopped_by_handler" in member.said
    depot.plan = Depot().plan
    member.consumer.inner.close()
    depot.member().run_until_idle()
    assert depot.stored == ["1", "2", "3"]


# A store that refuses rows.


@pytest.mark.parametrize("bad", [{"5"}, {"1"}, {"8"}, {"1", "8"}, {"3", "4"}, set(numbers(1, 8))])
def test_rows_that_are_refused_are_found_and_buried_alone_and_the_order_is_kept(bad):
    depot = Depot(batch=BatchRule(8, 5.0))
    depot.produce(*numbers(1, 8))
    member = depot.member()
    member.sink.refuses = bad
    member.run_until_idle()
    good = [number for number in numbers(1, 8) if number not in bad]
    assert (depot.stored, depot.positions) == (good, {0: 8})
    assert sorted(depot.letters()) == sorted(number.encode() for number in bad)


def test_refused_rows_between_skips_and_partitions_are_found_too():
    depot = Depot(partitions=2, batch=BatchRule(12, 5.0))
    depot.produce("skip", 1, "skip", 2, "bad", 3, partition=0)
    depot.produce(11, "skip", 12, 13, "skip", "skip", partition=1)
    member = depot.member()
    member.sink.refuses = {"2", "11"}
    member.run_until_idle()
    assert (sorted(depot.stored), depot.positions) == (["1", "12", "13", "3"], {0: 6, 1: 6})
    assert sorted(depot.letters()) == [b"11", b"2", b"bad"]


def test_a_refusal_of_a_batch_without_rows_is_held_and_ends_nothing():
    depot = Depot()
    depot.produce("skip", "skip", "skip")
    member = depot.member()
    member.sink.answers.append(RowsRefused("Nothing is not enough."))
    member.run_until_idle()
    assert (depot.positions, depot.letters()) == ({0: 3}, [])


def test_a_store_that_goes_away_between_two_halves_stores_each_row_once():
    depot = Depot(batch=BatchRule(8, 5.0))
    depot.produce(*numbers(1, 8))
    member = depot.member()
    member.sink.refuses = {"6"}
    member.step(2)
    member.sink.answers.extend([AWAY, AfterAll(UNKNOWN), AWAY])
    member.run_until_idle()
    assert depot.stored == ["1", "2", "3", "4", "5", "7", "8"]
    assert depot.letters() == [b"6"]


# The end.


def test_the_end_stores_what_was_read_and_then_commits():
    depot = Depot()
    depot.produce(1, 2)
    member = depot.member()
    member.step(2)
    member.loop.stop(depot.clock.monotonic() + 5)
    member.step(3)
    assert (member.loop.is_over, member.loop.left_behind) == (True, 0)
    assert (depot.stored, depot.committed()) == (["1", "2"], 2)


def test_the_end_does_not_wait_for_a_store_that_never_answers():
    depot = Depot()
    depot.produce(1, 2, 3)
    member = depot.member(drain_seconds=30)
    member.writer.runs_at_once = False
    member.step(2)
    member.loop.stop(depot.clock.monotonic() + 0.2)
    member.step(3, seconds=0.1)
    assert (member.loop.is_over, member.loop.left_behind) == (True, 3)
    began_at = depot.clock.monotonic()
    member.consumer.inner.close()
    assert depot.clock.monotonic() - began_at < 0.2


def test_until_so_many_records_ends_a_sink_too():
    depot = Depot()
    depot.produce(*numbers(1, 9))
    member = depot.member(records_max=4)
    member.step(5)
    assert (member.loop.is_over, depot.stored, depot.committed()) == (True, numbers(1, 4), 4)


def test_a_sink_stores_nothing_at_a_stop_or_beyond_it():
    depot = Depot()
    depot.produce(*numbers(1, 9))
    member = depot.member(stops={AT: 4})
    member.step(5)
    assert (member.loop.is_over, depot.stored, depot.committed()) == (True, numbers(1, 4), 4)
