"""What a stage's author is asked and told between records."""

from engine.stepped import INPUT, OUT, Shop
from forebay.core.errors import Unavailable
from forebay.core.outcomes import Done, Reject, Retry, Skip
from forebay.core.records import TopicPartition
from forebay.engine.doors import LoopOptions

AWAY = Unavailable("The broker is away for a moment.")


def say(record):
    return {
        b"done": Done(),
        b"sent": Done({OUT: b"receipt"}),
        b"retry": Retry("later"),
        b"reject": Reject("never"),
        b"skip": Skip("known"),
    }[record.value]


def shop_that_tells(**options):
    told: list[list[bytes | None]] = []

    def when_done(records, shared):
        told.append([record.value for record in records])

    return Shop(say, stage_options={"when_done": when_done, **options}), told


def test_only_records_that_ended_in_done_are_told_of():
    shop, told = shop_that_tells()
    shop.produce(b"done", b"sent", b"retry", b"reject", b"skip")
    shop.member().run_until_idle()
    assert sorted(value for batch in told for value in batch) == [b"done", b"sent"]


def test_a_record_whose_output_is_not_acknowledged_is_not_told_of():
    shop, told = shop_that_tells()
    shop.produce(b"sent")
    member = shop.member()
    member.producer.failing = {"send": AWAY}
    member.step(50, seconds=0.5)
    assert told == []
    member.producer.failing = {}
    member.run_until_idle()
    assert told == [[b"sent"]]


def test_records_are_told_of_before_their_offsets_are_committed():
    committed: list[int | None] = []

    def when_done(records, shared):
        committed.append(shop.committed())

    shop = Shop(say, stage_options={"when_done": when_done})
    shop.produce(b"done", b"done")
    shop.member().run_until_idle()
    assert committed == [0]
    assert shop.committed() == 2


def test_a_record_that_became_a_dead_letter_for_its_outputs_sake_is_not_told_of():
    told = []
    shop = Shop(
        lambda record: Done({"no-such-topic": b"x"}),
        stage_options={"when_done": lambda records, shared: told.extend(records)},
    )
    shop.produce(b"1")
    shop.member().run_until_idle()
    assert told == []


def test_a_hook_that_fails_is_told_and_keeps_no_offset_back():
    def when_done(records, shared):
        raise OSError("the disk is full")

    shop = Shop(say, stage_options={"when_done": when_done})
    shop.produce(b"done")
    member = shop.member()
    member.run_until_idle()
    assert shop.committed() == 1
    assert "stage.when_done_failed" in member.said


def test_a_stage_that_waits_for_something_starts_nothing_says_why_and_goes_on_later():
    reasons = ["The cache is full."]
    shop = Shop(say, stage_options={"waits_for": lambda shared: reasons[0] if reasons else None})
    shop.produce(b"done", b"done")
    member = shop.member()
    member.step(20, seconds=1)
    assert shop.committed() in {None, 0}
    assert "The cache is full." in member.loop.health(shop.clock.monotonic()).reasons
    reasons.clear()
    member.run_until_idle()
    assert shop.committed() == 2


def test_a_stage_that_waits_goes_on_polling_so_that_its_group_keeps_it():
    shop = Shop(say, stage_options={"waits_for": lambda shared: "The cache is full."})
    shop.produce(*([b"done"] * 50))
    member = shop.member()
    member.consumer.calls.clear()
    member.step(50, seconds=0.5)
    assert member.consumer.calls.count("poll") >= 20


def test_a_question_that_fails_keeps_the_stage_waiting_and_says_why():
    answers = [OSError("the disk is gone"), None]

    def waits_for(shared):
        answer = answers[0]
        if answer is not None:
            raise answer

    shop = Shop(say, stage_options={"waits_for": waits_for})
    shop.produce(b"done")
    member = shop.member()
    member.step(5, seconds=1)
    assert shop.committed() in {None, 0}
    (reason,) = member.loop.health(shop.clock.monotonic()).reasons
    assert "OSError: the disk is gone" in reason
    answers.pop(0)
    member.run_until_idle()
    assert shop.committed() == 1


def test_a_rebalance_starts_nothing_of_a_stage_that_waits():
    handled = []
    reasons = [None]
    shop = Shop(
        lambda record: handled.append(record.value),
        partitions=2,
        stage_options={"waits_for": lambda shared: reasons[0]},
    )
    shop.produce(b"1", partition=0)
    member = shop.member(runs_at_once=False)
    member.step(3, seconds=1)
    begun = member.executor.begin()
    reasons[0] = "The cache is full."
    shop.produce(b"2", partition=1)
    member.step(2, seconds=1)
    member.executor.while_waiting = lambda: member.executor.end(*begun)
    member.loop.revoked([TopicPartition(INPUT, 0)])
    assert not member.executor.lanes
    assert handled == [b"1"]


def test_dev_mode_keeps_no_record_for_a_hook_that_is_never_told():
    told = []
    shop = Shop(say, stage_options={"when_done": lambda records, shared: told.extend(records)})
    shop.produce(*([b"done"] * 20))
    by_hand = LoopOptions(by_hand={TopicPartition(INPUT, 0): 0})
    member = shop.member(by_hand)
    member.step(30, seconds=1)
    assert member.loop.counters.handled == 20
    assert member.loop._done is None
    assert told == []


def test_a_stage_whose_broker_is_away_rests_while_its_handler_runs():
    shop = Shop(say)
    shop.produce(b"done")
    member = shop.member(runs_at_once=False)
    member.step(3, seconds=1)
    member.executor.begin()
    member.consumer.failing = {"poll": AWAY}
    waits = []
    for _ in range(200):
        waits.append(member.loop.step(shop.clock.monotonic()))
        if waits[-1].until == "records":
            member.loop.rest(waits[-1])
            shop.clock.advance(0.001)
        else:
            shop.clock.advance(waits[-1].seconds)
    assert [wait for wait in waits[60:] if wait.until == "records"] == []
