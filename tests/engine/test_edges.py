"""What the simulation and a hard look found in this engine, each by its name."""

import pytest

from engine.stepped import INPUT, LETTERS, OUT, TIER, Shop
from forebay.core.backpressure import Bounds
from forebay.core.envelope import first_envelope, read_envelope, seal
from forebay.core.errors import ForebayError, RecordTooLarge, Unavailable
from forebay.core.markers import read_marker
from forebay.core.outcomes import Done, Reject, Retry, Skip
from forebay.core.records import Record, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.core.topics import TopicSpec
from forebay.engine.doors import LoopOptions, Wait
from forebay.engine.settler import HOOK_FAILED

AT = TopicPartition(INPUT, 0)
AWAY = Unavailable("The broker is away for a moment.")


class Failed(ForebayError):
    def __init__(self, sentence: str, category: str) -> None:
        super().__init__(sentence)
        self.category = category


# Where partitions start and go on.


def test_a_member_that_was_expelled_before_it_could_start_joins_again():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member()
    member.consumer.failing = {"commit": AWAY}
    member.step(2, seconds=1)
    member.expel()
    member.consumer.failing = {}
    member.run_until_idle()
    assert shop.committed() == 1


def test_a_stage_that_cannot_start_a_partition_goes_on_polling():
    shop = Shop()
    member = shop.member()
    member.admin.failing = {"describe_topics": AWAY}
    member.step(2, seconds=1)
    member.consumer.calls.clear()
    member.step(100, seconds=0.2)
    assert member.consumer.calls.count("poll") >= 15


def test_a_partition_that_cannot_start_holds_no_other_up_and_loses_nothing_of_it():
    shop = Shop(partitions=2)
    shop.produce(b"1", partition=0)
    first = shop.member()
    first.run_until_idle()
    first.consumer.inner.close()
    shop.broker._store.group(shop.route.group).committed.pop(TopicPartition(INPUT, 1))
    shop.produce(b"2", b"3", partition=0)
    shop.produce(b"4", partition=1)
    member = shop.member()
    member.admin.failing = {"describe_topics": AWAY}
    member.step(10, seconds=1)
    assert (shop.committed(0), shop.committed(1)) == (3, None)
    member.admin.failing = {}
    member.run_until_idle()
    assert (shop.committed(0), shop.committed(1)) == (3, 1)
    assert member.loop.counters.handled == 3


def test_retention_that_passes_a_reader_takes_nothing_from_those_in_flight():
    shop = Shop(lambda record: Done({OUT: record.value}), stage_options={"bounds": Bounds(3)})
    shop.produce(b"1", b"2", b"3", b"4", b"5", b"6")
    member = shop.member(runs_at_once=False)
    member.step(2)
    running = member.executor.begin()
    shop.broker.admin().trim({AT: 5})
    member.step(3, seconds=1)
    member.executor.end(*running)
    member.executor.runs_at_once = True
    member.executor.finish_all()
    member.run_until_idle()
    assert shop.values(OUT) == [b"1", b"2", b"3", b"6"]
    assert (member.loop.counters.expired, shop.committed()) == (2, 6)


def test_a_paused_partition_that_retention_passed_is_resumed():
    shop = Shop(stage_options={"bounds": Bounds(records=2), "timeout_seconds": None})
    shop.produce(*[b"%d" % number for number in range(9)])
    member = shop.member(runs_at_once=False)
    member.step(4, seconds=1)
    assert member.held().is_paused
    shop.broker.admin().trim({AT: 8})
    member.step(3, seconds=1)
    member.executor.runs_at_once = True
    member.executor.finish_all()
    member.run_until_idle()
    assert shop.committed() == 9


@pytest.mark.parametrize("how", ["joins", "is killed"])
def test_nothing_after_the_start_of_a_latest_group_is_missed_when_a_member(how):
    handled = []
    options = {"start_at": "latest"}
    shop = Shop(lambda record: handled.append(record.value), owned=False, stage_options=options)
    shop.produce(b"before")
    first = shop.member(runs_at_once=False)
    first.step(2)
    shop.clock.advance(1)
    shop.produce(b"1", b"2")
    first.step(2)
    second = shop.member()
    if how == "joins":
        for _ in range(4):
            second.step(seconds=0.5)
            first.step()
        first.executor.runs_at_once = True
        first.executor.finish_all()
    else:
        first.expel()
    for _ in range(20):
        second.step(seconds=0.5)
        if how == "joins":
            first.step()
    assert sorted(set(handled)) == [b"1", b"2"]


def test_an_idle_poll_brings_no_more_than_the_bounds_allow():
    shop = Shop(stage_options={"bounds": Bounds(records=3)})
    member = shop.member(runs_at_once=False)
    member.step(2)
    shop.produce(*[b"x"] * 50)
    member.loop.rest(Wait("records", 0))
    member.step()
    assert member.loop.held.records <= 3


# Handlers that do not return.


def test_a_handler_that_returns_after_its_lane_was_reopened_frees_no_place_twice():
    shop = Shop(stage_options={"order_by": "key"})
    shop.produce(b"1", b"2")
    member = shop.member(runs_at_once=False)
    member.step(2)
    lane, work = member.executor.begin()
    member.step(20, seconds=1)
    assert "stage.lane_reopened" in member.said
    member.executor.end(lane, work)
    member.step()
    assert member.held().handed_out == 1
    member.executor.finish_all()
    member.run_until_idle()
    assert (member.held().handed_out, shop.committed(), shop.values(LETTERS)) == (0, 2, [b"1"])


def test_a_handler_that_never_returns_does_not_put_the_end_off():
    shop = Shop()
    shop.broker.refuse_writes(LETTERS)
    shop.produce(b"1")
    member = shop.member(LoopOptions(drain_seconds=5, supervised=True), runs_at_once=False)
    member.step(2)
    member.executor.begin()
    member.step(30, seconds=1)
    assert (member.loop.wants_restart, member.loop.is_over) == (True, True)


def test_a_stop_in_a_hurry_is_not_put_off_by_a_handler_that_asks_for_one():
    def ends(record: Record):
        raise SystemExit

    shop = Shop(ends)
    shop.produce(b"1", b"2", key=None)
    member = shop.member(LoopOptions(drain_seconds=600), runs_at_once=False)
    member.step(2)
    first, _ = member.executor.begin(), member.executor.begin()
    member.loop.stop(shop.clock.monotonic() + 1)
    member.executor.end(*first)
    member.step(3, seconds=1)
    assert member.loop.is_over


def test_nothing_starts_after_the_stop():
    handled = []
    shop = Shop(lambda record: handled.append(record.value))
    member = shop.member()
    member.step(2)
    shop.produce(b"1")
    member.loop.rest(Wait("records", 0))
    member.loop.stop(shop.clock.monotonic() + 5)
    member.step(3)
    assert (handled, shop.committed(), member.loop.is_over) == ([], 0, True)


def test_who_leaves_after_its_time_does_not_wait_for_its_handlers_again():
    shop = Shop()
    shop.produce(b"1")
    member = shop.member(LoopOptions(drain_seconds=30), runs_at_once=False)
    member.step(2)
    member.executor.begin()
    member.loop.stop(shop.clock.monotonic() + 0.2)
    member.step(2, seconds=0.2)
    assert member.loop.is_over
    began_at = shop.clock.monotonic()
    member.consumer.inner.close()
    assert shop.clock.monotonic() - began_at < 0.1
    assert shop.committed() == 0


# What a record leaves behind.


def test_a_record_whose_output_is_refused_is_dead_and_not_tried_again_as_well():
    shop = Shop(
        lambda record: Retry("not all of it", emit={OUT: b"x" * 9_000}), record_bytes_max=8_000
    )
    shop.produce(b"1")
    member = shop.member()
    member.run_until_idle()
    assert (shop.values(LETTERS), shop.values(TIER)) == ([b"1"], [])


def test_a_replay_whose_output_is_refused_is_not_told_as_resolved():
    shop = Shop(lambda record: Done({OUT: b"x" * 9_000}), record_bytes_max=8_000)
    source = Record(b"1", b"a", [], INPUT, 0, 0, 1_000)
    envelope = first_envelope(shop.route.group, source)
    headers = [*seal(source, envelope), ("forebay-replay", b"1/again")]
    shop.produce(b"1", headers=headers)
    member = shop.member()
    member.run_until_idle()
    kinds = [read_marker(record) for record in shop.records(LETTERS)]
    assert kinds == [None], "the dead letter alone says how the replay ended"


def test_a_letter_that_was_made_smaller_still_says_that_its_hook_failed():
    def fails(record: Record, failure: object):
        raise RuntimeError

    def raises(record: Record):
        raise RecordTooLarge("much to say " * 300)

    options = {"when_dead_lettered": fails}
    shop = Shop(raises, record_bytes_max=5_000, stage_options=options)
    shop.produce(b"x" * 2_500)
    member = shop.member()
    member.run_until_idle()
    (letter,) = shop.records(LETTERS)
    assert HOOK_FAILED in list(letter.headers)


def test_a_hooks_outputs_are_acknowledged_before_the_offset_is_committed():
    options = {"when_dead_lettered": lambda record, failure: {OUT: b"failed"}}
    shop = Shop(lambda record: Reject("bad"), stage_options=options)
    shop.broker.refuse_writes(OUT)
    shop.produce(b"1")
    member = shop.member()
    member.step(30, seconds=1)
    assert shop.committed() == 0
    shop.broker.accept_writes(OUT)
    member.run_until_idle()
    assert (shop.committed(), shop.values(OUT)) == (1, [b"failed"])


def test_outputs_that_failed_for_a_while_keep_their_order():
    shop = Shop(lambda record: Done({OUT: record.value}))
    shop.broker.refuse_writes(OUT)
    shop.produce(b"1", b"2", b"3")
    member = shop.member()
    member.step(3)
    shop.broker.accept_writes(OUT)
    member.run_until_idle()
    assert shop.values(OUT) == [b"1", b"2", b"3"]


# Handlers that say what no engine can carry out: their record fails, the stage goes on.


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raises(error: BaseException):
    raise error


NONSENSE = {
    "a delay that is none": lambda record: Retry("later", after="soon"),
    "a reason that is no text": lambda record: Retry(None),
    "a rejection without words": lambda record: Reject(None),
    "a category that is no text": lambda record: Retry("later", category=None),
    "a reason that is no unicode": lambda record: Retry("file caf\udce9"),
    "an error that is no unicode": lambda record: _raises(FileNotFoundError(2, "no", "caf\udce9")),
    "an error without words": lambda record: _raises(_Unspeakable()),
    "a key that is text": lambda record: Done({OUT: Record(b"1", "a")}),
    "a key that is a number": lambda record: Done({OUT: Record(b"1", 7)}),
    "a header that is text": lambda record: Done({OUT: Record(b"1", b"a", [("colour", "red")])}),
    "a header that is no pair": lambda record: Done({OUT: Record(b"1", b"a", ["red"])}),
    "a topic that is none": lambda record: Done({None: b"1"}),
    "a topic that is a number": lambda record: Done({7: b"1"}),
    "a partition that is text": lambda record: Done({OUT: Record(b"1", b"a", (), "", "first")}),
    "outputs that are none": lambda record: Done(emit=b"1"),
    "outputs that are a list": lambda record: Done(emit=[b"1"]),
}


@pytest.mark.parametrize("said", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_fails_its_record_and_not_the_stage(said):
    shop = Shop(lambda record: said(record) if record.value == b"bad" else None)
    shop.produce(b"bad", b"good")
    member = shop.member()
    member.run_until_idle()
    assert shop.committed() == 2
    assert shop.values(TIER) + shop.values(LETTERS) in ([b"bad"], [])


def test_a_skip_in_a_replay_may_say_anything():
    shop = Shop(lambda record: Skip("file caf\udce9"))
    source = Record(b"1", b"a", [], INPUT, 0, 0, 1_000)
    headers = [*seal(source, first_envelope(shop.route.group, source)), ("forebay-replay", b"1/r")]
    shop.produce(b"1", headers=headers)
    member = shop.member()
    member.run_until_idle()
    assert shop.committed() == 1


def test_a_try_in_place_leaves_no_outputs_of_the_try_before():
    tries = []

    def second_time(record: Record):
        tries.append(record)
        if len(tries) == 1:
            return Retry("a blip", emit={OUT: b"of the first"})
        return Done({})

    shop = Shop(second_time, stage_options={"retry": RetryPolicy((5.0,), in_place=1)})
    shop.produce(b"1")
    member = shop.member()
    member.run_until_idle()
    assert (len(tries), shop.values(OUT)) == (2, [])


def test_an_attempt_that_opened_a_circuit_counts_though_its_try_in_place_was_held_back():
    said = [Failed("busy", "transient"), Failed("not asked for now", "circuit_open")]

    def busy(_record: Record):
        raise said.pop(0)

    shop = Shop(busy, stage_options={"retry": RetryPolicy((5.0,), in_place=1)})
    shop.produce(b"1")
    member = shop.member()
    member.run_until_idle()
    (waiting,) = shop.records(TIER)
    envelope = read_envelope(waiting)
    assert (envelope.attempt, envelope.uncounted_since_ms) == (2, 0)
    assert envelope.failure.reason == "busy"


FORGED = {
    "a huge time": ("forebay-origin", b'["orders",0,0,1e300]'),
    "an endless time": ("forebay-origin", b'["orders",0,0,1e999]'),
    "no origin": ("forebay-origin", b"{}"),
    "a huge attempt": ("forebay-attempt", b"9" * 5_000),
    "half a text": ("forebay-reason", b"\xff\xfe"),
    "a huge number": ("forebay-replay", b"99999999999999999999/x"),
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
def test_forged_headers_on_a_topic_of_ours_do_not_end_the_stage(forged):
    shop = Shop(lambda record: Retry("not now"))
    source = Record(b"1", b"a", [], INPUT, 0, 0, 1_000)
    sealed = dict(seal(source, first_envelope(shop.route.group, source)))
    shop.produce(b"1", headers=list((sealed | dict([forged])).items()))
    member = shop.member()
    member.run_until_idle()
    assert (shop.committed(), shop.values(TIER)) == (1, [b"1"])


def test_an_output_to_a_topic_that_is_made_later_is_not_ours_to_wait_for():
    shop = Shop(lambda record: Done({"later": b"1"}))
    shop.produce(b"1")
    member = shop.member()
    member.run_until_idle()
    shop.broker.admin().create_topic(TopicSpec("later"))
    assert (shop.committed(), shop.values(LETTERS)) == (1, [b"1"])
