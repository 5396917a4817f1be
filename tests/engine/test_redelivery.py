"""The redelivery scheduler: never early, rarely late, never into a flood."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.tiers import BUSY, INPUT, Tiers, route_of
from forebay.core.envelope import open_envelope, read_envelope
from forebay.core.errors import Unavailable

AWAY = Unavailable("The broker is away for a moment.")
TIER = "shop-charge.retry.5s"


# When.


def test_a_retry_is_not_brought_back_a_moment_before_it_is_due():
    tiers = Tiers()
    tiers.fail(b"1")
    member = tiers.member()
    member.run_for(4.999)
    assert tiers.back() == []
    member.run_for(0.002)
    assert tiers.back() == [b"1"]


RETRIES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3_000), st.integers(0, 7_000)), max_size=40
)


@settings(max_examples=25, deadline=None)
@given(retries=RETRIES)
def test_none_is_early_and_none_later_than_a_step(retries):
    tiers = Tiers(route_of("charge", 5.0, 7.0))
    member = tiers.member()
    numbers = count()
    due: dict[bytes, int] = {}
    waits_for = [0, 0]
    for tier, gap_ms, due_in_ms in retries:
        member.run_for(gap_ms / 1000)
        value, due_ms = b"%d" % next(numbers), tiers.now_ms + due_in_ms
        tiers.fail(value, tier=tier, due_ms=due_ms, offset=len(due))
        waits_for[tier] = max(waits_for[tier], due_ms)
        due[value] = waits_for[tier]
    member.run_for(20)
    for record in tiers.records():
        late_ms = record.timestamp_ms - due.pop(record.value)
        assert 0 <= late_ms <= 205, "a head that is due waits for one poll at most"
    assert not due


def test_a_record_that_is_due_already_waits_for_nothing():
    tiers = Tiers()
    tiers.fail(b"1")
    tiers.clock.advance(3_600)
    member = tiers.member()
    member.step(2)
    assert tiers.back() == [b"1"]
    assert member.loop.late_seconds_max == pytest.approx(3_595)


def test_the_next_due_time_is_told_while_something_waits():
    tiers = Tiers()
    member = tiers.member()
    assert member.health.next_due_ms is None
    tiers.fail(b"1", tier=1)
    tiers.fail(b"2", tier=0)
    member.step(2)
    assert member.health.next_due_ms == tiers.now_ms + 5_000
    assert (member.health.unresolved, member.health.is_idle) == (2, True)


def test_a_due_time_in_the_far_future_waits_no_longer_than_twice_the_tiers_delay():
    tiers = Tiers()
    tiers.fail(b"1", due_ms=tiers.now_ms + 10**12)
    member = tiers.member()
    member.run_for(10.1)
    assert tiers.back() == [b"1"]


FORGED = {
    "nothing of ours": [],
    "no number": [("forebay-due", b"soon"), ("forebay-origin", b"[]")],
    "half of ours": [("forebay-id", b"x"), ("forebay-attempt", b"1")],
    "another group's": None,
}


@pytest.mark.parametrize("headers", FORGED.values(), ids=FORGED.keys())
def test_what_says_nothing_we_understand_waits_its_tiers_delay_and_goes_on(headers):
    tiers = Tiers()
    if headers is None:
        stranger = Tiers(route_of("other", 5.0))
        stranger.fail(b"1")
        headers = stranger.records("shop-other.retry.5s")[0].headers
    tiers.put(TIER, b"1", headers)
    tiers.fail(b"2", due_ms=tiers.now_ms)
    member = tiers.member()
    member.run_for(4.9)
    assert tiers.back() == []
    member.run_for(0.2)
    assert tiers.back() == [b"1", b"2"]
    envelope = open_envelope(tiers.records()[0], tiers.route.group, 3, 5_000)
    assert envelope is not None
    assert envelope.attempt == 2


# What comes back.


def test_key_value_headers_id_and_attempt_come_back_and_the_due_time_does_not():
    tiers = Tiers()
    tiers.fail(b"1", offset=7)
    tiers.member().run_for(6)
    (record,) = tiers.records()
    envelope = read_envelope(record)
    assert envelope is not None
    assert (record.key, record.value, next(iter(record.headers))) == (
        b"k",
        b"1",
        ("colour", b"red"),
    )
    assert (envelope.attempt, envelope.due_ms, envelope.origin.offset) == (2, 0, 7)
    assert envelope.failure == BUSY


def test_a_record_without_key_and_value_comes_back_without_them():
    tiers = Tiers()
    tiers.put(TIER, None, key=None)
    tiers.member().run_for(6)
    (record,) = tiers.records()
    assert (record.key, record.value) == (None, None)


def test_retries_of_one_tier_come_back_in_their_order():
    tiers = Tiers()
    for number in range(50):
        tiers.fail(b"%d" % number, offset=number)
    tiers.member().run_for(6)
    assert tiers.back() == [b"%d" % number for number in range(50)]


# Into a flood.


def test_the_gate_closes_above_1000_and_opens_again_at_500():
    tiers = Tiers(route_of("charge", 60.0))
    tiers.flood(1_001)
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.run_for(5)
    assert (tiers.back(), "redelivery.held" in member.said) == ([], True)
    tiers.catch_up(to_lag=501)
    member.run_for(5)
    assert tiers.back() == []
    tiers.catch_up(to_lag=500)
    member.run_for(1.1)
    assert tiers.back() == [b"1"]


def test_no_more_is_let_through_than_there_is_room_for():
    tiers = Tiers(route_of("charge", 60.0))
    tiers.flood(990)
    for number in range(50):
        tiers.fail(b"%d" % number, due_ms=tiers.now_ms, offset=number)
    tiers.member().run_for(5)
    assert len(tiers.back()) <= 11


def test_room_that_was_seen_long_ago_is_not_room_now():
    tiers = Tiers(route_of("charge", 60.0))
    tiers.fail(b"first", due_ms=tiers.now_ms)
    member = tiers.member()
    member.run_for(1)
    assert tiers.back() == [b"first"]
    tiers.clock.advance(200)
    tiers.flood(5_000)
    for number in range(50):
        tiers.fail(b"%d" % number, due_ms=tiers.now_ms, offset=1 + number)
    member.run_for(5)
    assert tiers.back() == [b"first"]


def test_what_is_resolved_above_the_watermark_is_not_in_front_of_a_retry():
    tiers = Tiers(route_of("charge", 60.0))
    tiers.flood(3_000, above=2_600)
    tiers.fail(b"1", due_ms=tiers.now_ms)
    tiers.member().run_for(1)
    assert tiers.back() == [b"1"]


def test_a_lag_that_nobody_knows_holds_and_says_so():
    tiers = Tiers(route_of("charge", 60.0))
    tiers.fail(b"1", due_ms=tiers.now_ms)
    member = tiers.member()
    member.admin.failing = {"describe_group": AWAY}
    member.run_for(5)
    assert tiers.back() == []
    assert any("away" in reason for reason in member.health.reasons)
    member.admin.failing = {}
    member.run_for(1.1)
    assert tiers.back() == [b"1"]
    assert member.health.is_well


def test_a_steady_flood_does_not_starve_retries():
    tiers = Tiers(route_of("charge", 5.0), partitions=2)
    tiers.flood(2_000)
    for number in range(40):
        tiers.fail(b"%d" % number, offset=number, partition=number % 2, due_ms=tiers.now_ms)
    member = tiers.member()
    member.run_for(5)
    assert tiers.back() == []
    member.run_for(10)
    assert 18 <= len(tiers.back()) <= 22, "one a second of each partition"


def test_what_one_target_holds_up_holds_no_other_up():
    slow, quick = route_of("charge", 60.0), route_of("ship", 60.0)
    tiers = Tiers(slow, quick)
    tiers.flood(1_001)
    tiers.fail(b"1", due_ms=tiers.now_ms)
    tiers.fail(b"2", route=quick, due_ms=tiers.now_ms)
    tiers.member().run_for(1)
    assert (tiers.back(), tiers.back(quick.re_entry(INPUT))) == ([], [b"2"])
