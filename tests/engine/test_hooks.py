"""What a stage's author is asked and told between records."""

from engine.stepped import OUT, Shop
from forebay.core.errors import Unavailable
from forebay.core.outcomes import Done, Reject, Retry, Skip

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
