from dataclasses import replace

import pytest

from forebay.engine.counters import Counters
from forebay.engine.health import PartitionHealth, StageHealth, health_from
from forebay.engine.receipt import receipt_of


def health(kind="record", *, stage="charge", places=(), waiting=0, due_ms=None, **counts):
    return StageHealth(
        stage=stage,
        group=f"shop-{stage}",
        kind=kind,
        unresolved=waiting,
        bytes_held=0,
        running=0,
        stuck=0,
        oldest_seconds=0.0,
        next_due_ms=due_ms,
        is_idle=True,
        is_stopping=False,
        reasons=(),
        partitions=tuple(
            PartitionHealth(topic, partition, offset, 0, 0, is_paused=False)
            for topic, partition, offset in places
        ),
        counters=Counters(**counts).as_object(),
    )


def sentence(*healths, left_behind=0, now_ms=1_000_000):
    return receipt_of(healths, 1.5, left_behind).sentence(now_ms)


def test_a_receipt_is_one_line_that_says_what_was_done_and_what_waits():
    charge = health(
        places=[("orders", 0, 3_120), ("orders", 1, 3_044)], handled=12_331, dead_lettered=7
    )
    scheduler = health("scheduler", stage="retry-scheduler", waiting=38, due_ms=1_012_000)
    assert sentence(charge, scheduler) == (
        "12,331 handled · 38 retrying (next in 12 s) · 7 dead letters · "
        "resumes at orders[0..1] = 3,120 3,044 · nothing lost"
    )


@pytest.mark.parametrize(
    ("due_ms", "said"), [(1_000_100, "1 s"), (1_059_000, "59 s"), (1_300_000, "300 s")]
)
def test_the_next_retry_is_told_in_seconds(due_ms, said):
    scheduler = health("scheduler", waiting=2, due_ms=due_ms)
    assert f"2 retrying (next in {said})" in sentence(health(), scheduler)


def test_what_retention_took_before_it_was_read_is_not_called_nothing():
    said = sentence(health(handled=3, expired=5))
    assert "5 expired" in said
    assert "nothing lost" not in said


def test_what_still_ran_at_the_deadline_is_told_and_makes_the_exit_a_failure():
    receipt = receipt_of([health(handled=1)], 1.0, 2)
    assert "2 were still running" in receipt.sentence(0)
    assert (receipt.exit_code, receipt.as_object()["exit"]) == (1, 1)
    assert receipt_of([health()], 1.0, 0).exit_code == 0


def test_partitions_that_are_not_next_to_each_other_are_named_one_by_one():
    stage = health(places=[("orders", 4, 9), ("orders", 0, 7), ("returns", 2, 1)])
    assert "resumes at orders[0,4] = 7 9, returns[2] = 1" in sentence(stage)


def test_a_partition_that_had_two_owners_resumes_where_the_last_one_left_it():
    first, second = health(places=[("orders", 0, 7)]), health(places=[("orders", 0, 9)])
    assert receipt_of([first, second], 1.0, 0).committed == {"orders:0": 9}


def test_sinks_count_where_there_is_no_record_stage_and_under_their_name_otherwise():
    sink = health("sink", stage="rows", handled=5, places=[("receipts", 0, 5)])
    assert receipt_of([sink], 1.0, 0).handled == 5
    both = receipt_of([health(handled=2), sink], 1.0, 0)
    assert (both.handled, both.committed) == (2, {})
    assert (both.stages["rows"]["handled"], both.stages["charge"]["handled"]) == (5, 2)


def test_a_receipt_for_machines_says_when_the_next_retry_is_due():
    scheduler = health("scheduler", waiting=1, due_ms=1_700_000_000_000)
    told = receipt_of([scheduler], 1.23456, 0).as_object()
    assert (told["next_due"], told["seconds"]) == ("2023-11-14T22:13:20+00:00", 1.235)
    assert receipt_of([], 0.0, 0).as_object()["next_due"] is None


def test_health_goes_through_json_and_comes_back_as_it_was():
    import orjson

    told = health(places=[("orders", 0, 7)], waiting=3, due_ms=5, handled=1)
    assert health_from(orjson.loads(orjson.dumps(told.as_object()))) == told


def test_the_partition_that_blocks_is_the_one_with_the_longest_way_to_its_commit():
    quiet = PartitionHealth("orders", 0, 0, 0, 900, is_paused=False)
    near = PartitionHealth("orders", 1, 0, 3, 10, is_paused=False)
    far = PartitionHealth("orders", 2, 0, 1, 500, is_paused=False)
    assert replace(health(), partitions=(quiet, near, far)).blocking == far
    assert replace(health(), partitions=(quiet,)).blocking is None


def test_a_stage_is_well_without_reasons():
    assert health().is_well
    assert not replace(health(), reasons=("The broker is away.",)).is_well
