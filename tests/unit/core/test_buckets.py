import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.buckets import TokenBucket
from forebay.core.errors import InvalidRequest

RATES = st.floats(0.1, 1_000)
WAITS = st.lists(st.floats(0, 2), max_size=50)


@given(rate=RATES, burst=st.floats(1, 100), waits=WAITS)
def test_never_more_than_the_burst_and_the_rate_allow(rate, burst, waits):
    bucket, now, taken = TokenBucket(rate, burst), 0.0, 0
    for wait in waits:
        now += wait
        taken += bucket.take(now) == 0.0
        assert taken <= burst + rate * now + 1e-6


@given(rate=RATES, burst=st.floats(1, 100), tokens=st.floats(0.1, 1_000))
def test_who_waits_as_long_as_told_gets_what_was_asked(rate, burst, tokens):
    bucket = TokenBucket(rate, burst)
    while bucket.take(0.0) == 0.0:
        pass
    wait = bucket.take(0.0, tokens)
    assert wait == 0.0 or bucket.take(wait * 1.000001 + 1e-6, tokens) == 0.0


def test_a_clock_that_goes_back_fills_nothing():
    bucket = TokenBucket(1, burst=1)
    assert bucket.take(100.0) == 0.0
    assert bucket.take(0.0) > 0
    assert bucket.available(100.0) == 0


def test_one_that_takes_more_than_a_burst_makes_the_next_wait_for_it():
    bucket = TokenBucket(10, burst=10)
    assert bucket.take(0.0, 25) == 0.0
    assert bucket.take(0.0, 1) == pytest.approx(1.6)
    assert bucket.available(0.0) == 0


@pytest.mark.parametrize("rate", [0, -1])
def test_no_rate_is_refused(rate):
    with pytest.raises(InvalidRequest, match="rate"):
        TokenBucket(rate)
