"""The redelivery scheduler while targets refuse, partitions move and processes die."""

import pytest

from engine.tiers import INPUT, SteppedScheduler, Tiers, route_of
from forebay.core.envelope import read_envelope
from forebay.core.errors import (
    AccessDenied,
    Full,
    RecordTooLarge,
    Unavailable,
    UnknownTopic,
)
from forebay.core.records import TopicPartition
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.routes import Route

AWAY = Unavailable("The broker is away for a moment.")
DENIED = AccessDenied("Writing to that topic is not allowed.")
TOO_LARGE = RecordTooLarge("That topic takes no record like it.")
TIER, LETTERS = "shop-charge.retry.5s", "shop-charge.dlq"
RECORDS_MAX = 1_000  # of one tier partition, in memory


def ids(tiers: Tiers) -> list[tuple[str, int]]:
    found = (read_envelope(record) for record in tiers.records())
    return [(envelope.id, envelope.attempt) for envelope in found if envelope]


# Targets that refuse.


def refused_at_once(member: SteppedScheduler) -> dict:
    return member.producer.raises


def refused_by_report(member: SteppedScheduler) -> dict:
    return member.producer.reports


REFUSALS = pytest.mark.parametrize("refusals", [refused_at_once, refused_by_report])
MAY_PASS = pytest.mark.parametrize("error", [AWAY, DENIED, UnknownTopic("There is no such topic.")])


@REFUSALS
@MAY_PASS
def test_a_target_that_refuses_for_now_is_tried_again_and_said(refusals, error):
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    refusals(member)[tiers.again] = error
    member.run_for(30)
    assert (tiers.back(), tiers.back(LETTERS), tiers.committed(TIER)) == ([], [], 0)
    assert str(error) in member.health.reasons
    refusals(member).clear()
    member.run_for(10)
    assert (tiers.back(), tiers.committed(TIER), member.health.reasons) == ([b"1"], 1, ())


@pytest.mark.parametrize("seconds", [0.3, 0.8])
@REFUSALS
def test_after_a_refusal_retries_still_come_back_in_their_order(refusals, seconds):
    tiers = Tiers()
    for number in range(20):
        tiers.fail(b"%d" % number, offset=number, due_ms=tiers.now_ms)
    member = tiers.member()
    refusals(member)[tiers.again] = AWAY
    member.run_for(seconds)
    refusals(member).clear()
    member.run_for(10)
    assert tiers.back() == [b"%d" % number for number in range(20)]


@REFUSALS
@MAY_PASS
def test_a_target_that_refuses_holds_no_other_stages_retries_up(refusals, error):
    refused, fine = route_of("charge", 5.0), route_of("ship", 5.0)
    tiers = Tiers(refused, fine)
    tiers.fail(b"1", due_ms=tiers.now_ms)
    for number in range(5):
        tiers.fail(b"%d" % number, route=fine, offset=number, due_ms=tiers.now_ms)
    member = tiers.member()
    refusals(member)[tiers.again] = error
    member.run_for(5)
    assert len(tiers.back(fine.re_entry(INPUT))) == 5


def test_a_producer_that_is_full_loses_and_reorders_nothing():
    tiers = Tiers()
    for number in range(10):
        tiers.fail(b"%d" % number, offset=number, due_ms=tiers.now_ms)
    member = tiers.member()
    member.producer.raises[tiers.again] = Full("The buffer is full.")
    member.run_for(2)
    member.producer.raises.clear()
    member.run_for(2)
    assert tiers.back() == [b"%d" % number for number in range(10)]


def test_a_broker_that_refuses_the_whole_producer_holds_and_does_not_end_the_scheduler():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.producer.poll_raises = DENIED
    member.run_for(5)
    assert str(DENIED) in member.health.reasons
    member.producer.poll_raises = None
    member.run_for(5)
    assert (tiers.back(), tiers.committed(TIER), member.health.reasons) == ([b"1"], 1, ())


@REFUSALS
def test_a_retry_that_can_never_go_back_becomes_a_dead_letter_and_its_tier_goes_on(refusals):
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    refusals(member)[tiers.again] = TOO_LARGE
    member.run_for(5)
    refusals(member).clear()
    tiers.fail(b"2", offset=1, due_ms=tiers.now_ms)
    member.run_for(5)
    assert (tiers.back(), tiers.back(LETTERS), tiers.committed(TIER)) == ([b"2"], [b"1"], 2)
    envelope = read_envelope(tiers.records(LETTERS)[0])
    assert envelope is not None
    assert envelope.failure is not None
    assert (envelope.attempt, envelope.failure.category) == (1, "exhausted")
    assert tiers.again in envelope.failure.reason
    assert member.loop.counters.dead_lettered == 1


def test_a_dead_letter_that_is_too_large_says_less_and_less():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.producer.raises[tiers.again] = TOO_LARGE
    send = member.producer.send

    def narrow(record, token=None):
        if record.topic == LETTERS and "forebay-history" in dict(record.headers):
            raise TOO_LARGE
        send(record, token)

    member.producer.send = narrow
    member.run_for(5)
    (letter,) = tiers.records(LETTERS)
    assert ("forebay-history" in dict(letter.headers), tiers.committed(TIER)) == (False, 1)


@REFUSALS
def test_a_dead_letter_that_nothing_can_hold_holds_no_other_tier_up(refusals):
    tiers = Tiers(route_of("charge", 5.0), route_of("ship", 5.0))
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    refusals(member).update({tiers.again: TOO_LARGE, LETTERS: TOO_LARGE})
    member.run_for(5)
    tiers.fail(b"2", route=tiers.routes[1], due_ms=tiers.now_ms)
    member.run_for(5)
    assert tiers.back(tiers.routes[1].re_entry(INPUT)) == [b"2"]
    assert str(TOO_LARGE) in member.health.reasons


class Shelf:
    """Takes dead letters that no topic takes, where it is not away."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.trouble: Unavailable | None = None

    def keep(self, route: Route, letter: DeadLetter) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.letters.append(letter)


@REFUSALS
def test_a_dead_letter_that_its_topic_cannot_hold_is_kept_elsewhere_and_resolves_then(refusals):
    tiers, shelf = Tiers(), Shelf()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member(keep=shelf.keep)
    refusals(member).update({tiers.again: TOO_LARGE, LETTERS: TOO_LARGE})
    shelf.trouble = AWAY
    member.run_for(3)
    assert (tiers.committed(TIER), str(AWAY) in member.health.reasons) == (0, True)
    shelf.trouble = None
    member.run_for(3)
    (letter,) = shelf.letters
    assert (letter.record.value, tiers.committed(TIER), member.health.unresolved) == (b"1", 1, 0)
    assert letter.envelope.failure is not None
    assert letter.envelope.failure.category == "exhausted"


def test_a_stage_whose_dead_letters_go_to_a_file_loses_no_retry_that_cannot_go_back(tmp_path):
    tiers, shelf = Tiers(route_of("charge", 5.0, dead_letters=tmp_path / "dlq.csv")), Shelf()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member(keep=shelf.keep)
    member.producer.reports[tiers.again] = TOO_LARGE
    member.run_for(3)
    assert [letter.record.value for letter in shelf.letters] == [b"1"]
    assert (tiers.committed(TIER), member.loop.counters.dead_lettered) == (1, 1)


# Comings and goings.


def test_a_crash_between_the_publish_and_the_commit_repeats_it_with_its_id_and_attempt():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    first = tiers.member()
    first.consumer.failing = {"start_commit": AWAY}
    first.run_for(3)
    first.expel()
    tiers.member().run_for(5)
    once, twice = ids(tiers)
    assert once == twice
    assert tiers.committed(TIER) == 1


def test_what_was_sent_is_acknowledged_before_its_partition_is_handed_over():
    """A handover is no crash: nothing comes twice."""
    tiers = Tiers()
    for number in range(5):
        tiers.fail(b"%d" % number, offset=number, due_ms=tiers.now_ms)
    first = tiers.member()
    first.step(1)
    first.producer.poll, late = _reports_after(first, 0.2), first.producer.poll
    first.step(1)
    assert first.loop.in_flight == 5
    first.consumer.inner.close()
    assert tiers.committed(TIER) == 5
    first.producer.poll = late
    tiers.member().run_for(3)
    assert len(tiers.back()) == 5


def _reports_after(member: SteppedScheduler, seconds: float):
    """A producer whose broker answers only then."""
    poll = member.producer.poll
    answers_at = member.clock.monotonic() + seconds

    def later(timeout_seconds: float):
        if member.clock.monotonic() < answers_at:
            member.clock.advance(timeout_seconds)
            return []
        return poll(timeout_seconds)

    return later


def test_a_broker_that_never_answers_does_not_put_a_handover_off_for_ever():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.step(1)
    member.producer.is_silent = True
    member.step(1)
    began_at = tiers.clock.monotonic()
    member.consumer.inner.close()
    assert tiers.clock.monotonic() - began_at <= 31
    assert tiers.committed(TIER) == 0


def test_what_comes_back_of_a_partition_that_was_lost_changes_nothing():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.step(1)
    member.producer.is_silent = True
    member.step(1)
    member.expel()
    member.step(1)
    member.producer.is_silent = False
    member.producer.reports[tiers.again] = AWAY
    member.run_for(3)
    member.producer.reports.clear()
    member.run_for(3)
    assert len({id for id, _ in ids(tiers)}) == 1
    assert len(tiers.back()) == 2
    assert (tiers.committed(TIER), member.health.unresolved, member.health.bytes_held) == (1, 0, 0)


def test_two_schedulers_share_the_tiers_and_bring_each_retry_back_once():
    tiers = Tiers(route_of("charge", 5.0), partitions=2)
    first = tiers.member()
    first.step(2)
    for number in range(20):
        tiers.fail(b"%d" % number, offset=number, partition=number % 2)
    first.step(2)
    second = tiers.member()
    for _ in range(40):
        first.step(seconds=0.25)
        second.step()
    assert sorted(tiers.back(), key=int) == [b"%d" % number for number in range(20)]
    assert (first.health.unresolved, second.health.unresolved) == (0, 0)
    assert first.loop.counters.handled > 0
    assert second.loop.counters.handled > 0


def test_a_refusal_is_no_longer_said_by_who_gave_the_partition_away():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.producer.reports[tiers.again] = AWAY
    member.run_for(2)
    assert not member.health.is_well
    member.loop.revoked(list(member.consumer.assignment))
    assert member.health.is_well


def test_a_tier_that_is_longer_than_the_queue_is_paused_and_resumed_and_lost_nowhere():
    tiers = Tiers()
    records = 3 * RECORDS_MAX
    for number in range(records):
        tiers.fail(b"%d" % number, offset=number)
    member = tiers.member()
    at = TopicPartition(TIER, 0)
    member.step(5)
    assert member.loop._intake.held[at].is_paused
    assert member.consumer.inner._assigned.reader(at).paused
    assert member.health.unresolved < 2 * RECORDS_MAX
    member.run_for(5)
    for _ in range(10):
        tiers.catch_up(to_lag=0)
        member.run_for(1)
    assert tiers.back() == [b"%d" % number for number in range(records)]
    assert (tiers.committed(TIER), member.loop._intake.held[at].is_paused) == (records, False)


def test_large_retries_are_bounded_by_their_bytes():
    tiers = Tiers()
    for number in range(12):
        tiers.fail(b"x" * 500_000, offset=number)
    member = tiers.member()
    member.step(20)
    assert member.loop._intake.held[TopicPartition(TIER, 0)].is_paused


def test_retention_that_passed_a_tier_is_said_and_the_rest_comes_back():
    tiers = Tiers()
    for number in range(5):
        tiers.fail(b"%d" % number, offset=number)
    member = tiers.member()
    member.step(2)
    member.expel()
    tiers.broker.admin().trim({TopicPartition(TIER, 0): 3})
    other = tiers.member()
    other.run_for(6)
    assert tiers.back() == [b"3", b"4"]
    assert (other.loop.counters.expired, "partition.expired" in other.said) == (3, True)
    assert tiers.committed(TIER) == 5


def test_the_scheduler_goes_on_polling_whatever_holds_it():
    tiers = Tiers(route_of("charge", 60.0))
    tiers.flood(1_001)
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.producer.reports[tiers.again] = AWAY
    member.run_for(1)
    member.consumer.calls.clear()
    member.run_for(30)
    assert member.consumer.calls.count("poll") >= 30


def test_the_end_waits_for_what_was_sent_and_for_nothing_that_waits():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    tiers.fail(b"2", offset=1)
    member = tiers.member()
    member.step(1)
    member.loop.stop(tiers.clock.monotonic() + 5)
    member.step(2)
    assert (member.loop.is_over, member.loop.left_behind) == (True, 0)
    assert (tiers.back(), tiers.committed(TIER)) in (([b"1"], 1), ([], 0))
    assert member.health.next_due_ms is not None


def test_the_end_does_not_wait_for_a_broker_that_never_answers():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.step(1)
    member.producer.is_silent = True
    member.step(1)
    member.loop.stop(tiers.clock.monotonic() + 0.2)
    member.step(2, seconds=0.2)
    assert member.loop.is_over
    assert tiers.committed(TIER) == 0
