"""The bugs that other engines had, each by its name, over the stage loop.

Some bugs of the catalogue need threads, locks or transactions, which this loop does not have.
"""

import pytest

from engine.stepped import INPUT, LETTERS, OUT, TIER, Shop
from forebay.core.backpressure import Bounds
from forebay.core.envelope import read_envelope
from forebay.core.errors import CommitFailed, Full, Unavailable
from forebay.core.outcomes import Done, Reject, Retry
from forebay.core.records import Record, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.engine.doors import LoopOptions

AT = TopicPartition(INPUT, 0)
AWAY = Unavailable("The broker is away for a moment.")


def emits(record: Record) -> Done:
    return Done({OUT: record.value})


def rejects(record: Record) -> Reject:
    return Reject("bad order")


# Offsets and what is committed of them.


def test_a_record_that_was_seen_but_not_handled_at_a_revoke_is_not_committed():
    shop = Shop()
    shop.produce(b"1", b"2")
    member = shop.member(runs_at_once=False)
    member.step(2)
    member.consumer.inner.close()
    assert shop.committed() == 0


def test_a_commit_never_passes_work_in_flight():
    shop = Shop()
    shop.produce(b"1", b"2", b"3", key=None)
    member = shop.member(runs_at_once=False)
    member.step(2)
    first, second = member.executor.begin(), member.executor.begin()
    member.executor.end(*second)
    member.step(20, seconds=0.3)
    assert shop.committed() == 0
    member.executor.end(*first)
    member.step(20, seconds=0.3)
    assert shop.committed() == 2


def test_gaps_neither_hold_a_commit_nor_skew_it():
    """Compaction, transaction markers, aborted records: offsets that nobody delivers."""
    shop = Shop()
    shop.produce(*(b"%d" % number for number in range(9)))
    member = shop.member()
    consumer = member.consumer.inner
    member.loop._intake._consumer = _Holey(consumer, holes={0, 3, 4, 7})
    member.run_until_idle()
    assert shop.committed() == 9


class _Holey:
    def __init__(self, inner, holes):
        self._inner, self._holes = inner, holes

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def poll(self, *limits):
        return [record for record in self._inner.poll(*limits) if record.offset not in self._holes]


def test_a_log_that_starts_at_1000_is_committed_from_there():
    shop = Shop()
    shop.broker._store.log(AT).low = 1_000
    shop.produce(b"1")
    member = shop.member()
    member.run_until_idle()
    assert shop.committed() == 1_001


def test_an_exception_is_no_acknowledgement():
    def fails(record: Record):
        raise OSError("reset by peer")

    shop = Shop(fails)
    shop.broker.refuse_writes(TIER)
    shop.produce(b"1")
    member = shop.member()
    member.step(50, seconds=1)
    assert shop.committed() == 0
    shop.broker.accept_writes(TIER)
    member.run_until_idle()
    assert (shop.committed(), shop.values(TIER)) == (1, [b"1"])


def test_a_failed_output_is_not_skipped_by_a_later_one():
    shop = Shop(emits)
    shop.broker.refuse_writes(OUT)
    shop.produce(b"1")
    member = shop.member()
    member.step(3)
    shop.broker.accept_writes(OUT)
    shop.produce(b"2")
    member.step(1)
    assert shop.committed() == 0
    member.run_until_idle()
    assert (shop.committed(), sorted(shop.values(OUT))) == (2, [b"1", b"2"])


def test_a_refused_commit_is_not_taken_for_a_stored_one():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member()
    member.step()
    member.consumer.failing = {"start_commit": AWAY, "commit": CommitFailed({AT: AWAY})}
    member.step(20, seconds=1)
    assert (shop.committed(), member.loop.is_idle) == (0, False)
    assert "away" in " ".join(member.loop._reasons())
    member.consumer.failing = {}
    member.run_until_idle()
    assert shop.committed() == 1


# Rebalances.


def test_what_ran_at_a_revoke_does_not_count_against_the_next_assignment():
    shop = Shop()
    shop.produce(b"1", b"2", b"3", key=None)
    member = shop.member(runs_at_once=False)
    member.step(2)
    running = [member.executor.begin(), member.executor.begin()]
    member.expel()
    member.step(2)
    for lane, work in running:
        member.executor.end(lane, work)
    member.executor.runs_at_once = True
    member.executor.finish_all()
    member.run_until_idle()
    assert (member.loop.held.records, member.loop.left_behind, member.held().handed_out) == (0,) * 3


def test_a_stale_entry_does_not_swallow_the_fresh_record_at_its_offset():
    handled = []
    shop = Shop(lambda record: handled.append(record.offset))
    shop.produce(b"1")
    member = shop.member(runs_at_once=False)
    member.step(2)
    lane, work = member.executor.begin()
    member.expel()
    member.step(2)
    member.executor.end(lane, work)
    member.step(5, seconds=1)
    assert shop.committed() == 0, "the late result resolved the fresh record"
    member.executor.finish_all()
    member.run_until_idle()
    assert (handled, shop.committed(), member.loop.counters.late) == ([0, 0], 1, 1)


def test_a_revocation_returns_in_time_though_handlers_hang_and_the_commit_fails():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member(runs_at_once=False)
    member.step(2)
    member.executor.begin()
    member.consumer.failing = {"commit": AWAY}
    began_at = shop.clock.monotonic()
    member.loop.revoked([AT])
    assert shop.clock.monotonic() - began_at < 2.1
    assert len(member.loop.held) == 0


def test_a_full_producer_does_not_hold_up_a_revocation():
    shop = Shop(emits)
    shop.produce(b"1")
    member = shop.member()
    member.producer.failing = {"send": Full("full")}
    member.step(3)
    began_at = shop.clock.monotonic()
    member.loop.revoked([AT])
    assert shop.clock.monotonic() - began_at < 2.1
    assert shop.committed() == 0


def test_a_revocation_waits_for_what_runs_and_commits_it():
    shop = Shop(emits)
    shop.produce(b"1", b"2", b"3")
    member = shop.member(runs_at_once=False)
    member.step(2)
    running = [member.executor.begin()]
    member.executor.while_waiting = lambda: running and member.executor.end(*running.pop())
    member.loop.revoked([AT])
    assert (shop.committed(), shop.values(OUT)) == (1, [b"1"])


def test_a_late_acknowledgement_commits_nothing_of_a_partition_that_left():
    shop = Shop(emits)
    shop.produce(b"1")
    member = shop.member()
    member.step()
    polls = member.producer.inner.poll
    member.producer.inner.poll = lambda seconds: []
    member.step(2)
    member.expel()
    member.producer.inner.poll = polls
    member.step()
    assert shop.committed() == 0
    member.run_until_idle()
    assert shop.committed() == 1


def test_lost_partitions_are_not_committed():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member()
    member.step(2)
    member.consumer.calls.clear()
    member.loop.lost([AT])
    assert not {"commit", "start_commit"} & set(member.consumer.calls)


def test_a_fenced_owner_sends_no_dead_letter():
    shop = Shop(rejects)
    shop.produce(b"1")
    member = shop.member(runs_at_once=False)
    member.step(2)
    lane, work = member.executor.begin()
    member.loop.lost([AT])
    member.executor.end(lane, work)
    member.step(3, seconds=1)
    assert (shop.records(LETTERS), member.loop.counters.late) == ([], 1)


def test_a_partition_that_was_paused_comes_back_unpaused():
    shop = Shop(stage_options={"bounds": Bounds(records=2)})
    shop.produce(b"1", b"2", b"3", b"4")
    member = shop.member(runs_at_once=False)
    member.step(5, seconds=1)
    assert member.held().is_paused
    member.expel()
    member.executor.runs_at_once = True
    member.executor.finish_all()
    member.run_until_idle()
    assert shop.committed() == 4


def test_a_new_partition_is_paused_while_the_stage_is_full():
    shop = Shop(partitions=2, stage_options={"bounds": Bounds(records=2)})
    shop.produce(b"1", b"2", b"3", b"4", partition=0)
    member, other = shop.member(runs_at_once=False), shop.member()
    for _ in range(4):
        member.step(seconds=1)
        other.step()
    shop.produce(*[b"5"] * 50, partition=1)
    other.loop.stop(shop.clock.monotonic())
    other.step()
    other.consumer.inner.close()
    member.step(10, seconds=1)
    assert member.loop.held.records <= 4
    assert all(held.is_paused for held in member.loop.held)


def test_a_hundred_rebalances_leave_nothing_behind():
    shop = Shop()
    member = shop.member()
    for number in range(100):
        shop.produce(b"%d" % number)
        member.step(2, seconds=0.5)
        member.expel()
    member.run_until_idle()
    loop = member.loop
    kept = (loop._commits._stored, loop._commits.notes, loop.held.by_place, loop._dispatch._turns)
    assert [len(each) <= 1 for each in kept] == [True] * 4
    assert (shop.committed(), loop.held.records, loop.held.bytes) == (100, 0, 0)


# Lanes.


def test_the_same_key_on_two_topics_is_two_lanes():
    shop = Shop(stage_options={"reads": (INPUT, "refunds"), "order_by": "key"})
    shop.produce(b"1")
    shop.produce(b"2", topic="refunds")
    member = shop.member(runs_at_once=False)
    member.step(2)
    assert len(member.executor.lanes) == 2


@pytest.mark.parametrize(("key", "lanes"), [(None, 3), (b"", 1), (b"a", 1)])
def test_only_records_without_a_key_do_not_wait_for_each_other(key, lanes):
    shop = Shop(stage_options={"order_by": "key"})
    shop.produce(b"1", b"2", b"3", key=key)
    member = shop.member(runs_at_once=False)
    member.step(2)
    assert len(member.executor.lanes) == lanes


# Retries and dead letters.


def test_a_dead_letter_that_is_not_acknowledged_holds_its_offset():
    shop = Shop(rejects)
    shop.broker.refuse_writes(LETTERS)
    shop.produce(b"1", b"2", b"3")
    member = shop.member()
    member.step(100, seconds=1)
    assert (shop.committed(), "refused" in " ".join(member.loop._reasons())) == (0, True)
    shop.broker.accept_writes(LETTERS)
    member.run_until_idle()
    assert (shop.committed(), sorted(shop.values(LETTERS))) == (3, [b"1", b"2", b"3"])


def test_a_dead_letter_at_offset_0_does_not_come_again():
    shop = Shop(rejects)
    shop.produce(b"1")
    member = shop.member()
    member.run_until_idle()
    member.step(20, seconds=1)
    assert (shop.committed(), shop.values(LETTERS)) == (1, [b"1"])


def test_a_dead_letter_marks_no_other_record_as_done():
    shop = Shop(lambda record: Reject("bad") if record.value == b"3" else None)
    shop.produce(b"1", b"2", b"3", key=None)
    member = shop.member(runs_at_once=False)
    member.step(2)
    member.executor.begin()
    member.executor.finish_all()
    member.step(10, seconds=0.5)
    assert (shop.values(LETTERS), shop.committed()) == ([b"3"], 0)


def test_headers_do_not_grow_with_each_hop():
    shop = Shop(lambda record: Retry("not now", category="circuit_open"))
    shop.produce(b"1", headers=[("colour", b"red"), ("colour", None)])
    member = shop.member()
    sizes = []
    for _ in range(12):
        member.run_until_idle()
        came = shop.records(TIER)[-1]
        sizes.append(sum(len(name) + len(value or b"") for name, value in came.headers))
        assert list(came.headers)[:2] == [("colour", b"red"), ("colour", None)]
        shop.sender.send(Record(came.value, came.key, came.headers, INPUT))
        shop.sender.poll(0)
    assert sizes[-1] == sizes[-3] < 2_000


def test_a_record_that_fits_no_tier_becomes_a_dead_letter_and_the_others_go_on():
    def fails(record: Record):
        raise ValueError("much to say " * 300)

    shop = Shop(fails, record_bytes_max=5_000)
    shop.produce(b"x" * 3_500, b"2")
    member = shop.member()
    member.run_until_idle()
    sent = shop.records(TIER) + shop.records(LETTERS)
    assert sorted(len(record.value or b"") for record in sent) == [1, 3_500]
    big = read_envelope(max(sent, key=lambda record: len(record.value or b"")))
    assert big is not None
    assert big.failure is not None
    assert not big.failure.stack


def test_attempts_are_counted_by_failures_alone():
    shop = Shop(lambda record: Retry("not now"), stage_options={"retry": RetryPolicy((5.0, 20.0))})
    shop.produce(b"1")
    member = shop.member(runs_at_once=False)
    for _ in range(4):
        member.step(2)
        member.expel()
    member.executor.runs_at_once = True
    member.executor.finish_all()
    member.run_until_idle()
    (came,) = shop.records(TIER)
    envelope = read_envelope(came)
    assert envelope is not None
    assert envelope.attempt == 2


# Stopping, waiting, polling.


def test_a_stop_within_a_fifth_of_a_second_lets_handlers_have_that_long():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member(runs_at_once=False)
    member.step(2)
    lane, work = member.executor.begin()
    member.loop.stop(shop.clock.monotonic() + 0.2)
    member.step(seconds=0.15)
    assert not member.loop.is_over
    member.executor.end(lane, work)
    member.step()
    assert (member.loop.is_over, shop.committed()) == (True, 1)


def test_a_stage_commits_before_it_leaves_the_group():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member()
    member.step()
    member.loop.stop(shop.clock.monotonic() + 1)
    member.step(2)
    assert member.loop.is_over
    assert shop.committed() == 1


@pytest.mark.parametrize("is_stopping", [False, True])
def test_a_stage_that_can_take_nothing_polls_at_least_once_a_second(is_stopping):
    shop = Shop(stage_options={"bounds": Bounds(records=1), "timeout_seconds": None})
    shop.produce(b"1", b"2", b"3")
    member = shop.member(LoopOptions(drain_seconds=600), runs_at_once=False)
    member.step(3)
    member.executor.begin()
    if is_stopping:
        member.loop.stop(shop.clock.monotonic() + 600)
    member.consumer.calls.clear()
    member.step(300, seconds=0.2)
    assert member.consumer.calls.count("poll") >= 55
    assert member.loop.held.records <= 3
