import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.errors import InvalidRequest
from forebay.core.retries import RetryPolicy, retry_policy

DELAYS = st.lists(st.integers(1, 10**6), unique=True, max_size=6).map(sorted)


@given(delays=DELAYS)
def test_each_counted_failure_goes_one_tier_on_and_then_to_the_dead_letters(delays):
    policy = RetryPolicy(tuple(map(float, delays)))
    attempts = range(1, policy.attempts_max + 1)
    tiers = [policy.tier_after(attempt) for attempt in attempts]
    assert tiers == [*range(len(delays)), None]


@given(delays=DELAYS.filter(bool), attempt=st.integers(1, 9), after=st.floats(0, 2e6))
def test_a_wished_delay_is_never_cut_short_where_a_tier_is_long_enough(delays, attempt, after):
    policy = RetryPolicy(tuple(map(float, delays)))
    tier = policy.tier_after(attempt, after)
    if attempt >= policy.attempts_max:
        assert tier is None
    elif after <= delays[-1]:
        assert delays[tier] >= after
        assert tier == 0 or delays[tier - 1] < after
    else:
        assert tier == len(delays) - 1


@given(attempt=st.integers(1, 100))
def test_what_does_not_count_never_ends_in_the_dead_letters(attempt):
    assert RetryPolicy((5.0, 10.0)).tier_after(attempt, counts=False) == 0


def test_without_tiers_every_failure_is_final():
    assert RetryPolicy(()).tier_after(1, counts=False) is None


def test_delays_are_written_as_people_and_topics_want_them():
    assert retry_policy(["5m", 600, "1h"]).tiers == ("5m", "10m", "1h")
    assert retry_policy(None) == RetryPolicy()


@pytest.mark.parametrize("delays", [(5, 5), (10, 5), (0, 5), (-1,)])
def test_delays_that_do_not_grow_are_refused_with_a_sentence(delays):
    with pytest.raises(InvalidRequest, match="delay"):
        RetryPolicy(tuple(map(float, delays)))


@pytest.mark.parametrize("in_place", [-1, 3])
def test_more_tries_in_place_than_a_second_holds_are_refused(in_place):
    with pytest.raises(InvalidRequest, match="tier"):
        RetryPolicy(in_place=in_place)
