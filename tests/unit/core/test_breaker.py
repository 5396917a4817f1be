import pytest

from forebay.core.breaker import BreakerPolicy, CircuitBreaker
from forebay.core.errors import InvalidRequest


def opened(now: float = 0.0) -> CircuitBreaker:
    breaker = CircuitBreaker(BreakerPolicy(failures=2, open_seconds=30))
    breaker.failed(now)
    breaker.failed(now)
    return breaker


def test_it_opens_after_so_many_failures_in_a_row_and_not_before():
    breaker = CircuitBreaker(BreakerPolicy(failures=2))
    breaker.failed(0)
    breaker.succeeded()
    breaker.failed(1)
    assert breaker.allows(1)
    breaker.failed(2)
    assert (breaker.state(2), breaker.allows(2)) == ("open", False)


def test_one_probe_goes_out_at_a_time():
    breaker = opened()
    assert not breaker.allows(29.9)
    assert [breaker.allows(30), breaker.allows(30), breaker.allows(59)] == [True, False, False]


def test_a_probe_that_succeeds_closes_it():
    breaker = opened()
    breaker.allows(30)
    breaker.succeeded()
    assert (breaker.state(30), breaker.allows(30), breaker.probe_at) == ("closed", True, 0.0)


def test_a_probe_that_fails_opens_it_for_as_long_again():
    breaker = opened()
    breaker.allows(30)
    breaker.failed(31)
    assert [breaker.allows(60), breaker.allows(61)] == [False, True]


def test_a_probe_that_is_never_heard_of_gives_way_to_another():
    breaker = opened()
    breaker.allows(30)
    assert [breaker.allows(59.9), breaker.allows(60)] == [False, True]


def test_failures_of_what_was_sent_before_do_not_put_the_probe_off():
    breaker = opened()
    breaker.failed(29)
    assert breaker.allows(30)


def test_so_many_probes_go_out_at_once_and_so_many_successes_close_it():
    policy = BreakerPolicy(failures=1, open_seconds=30, successes=3, probes=2)
    breaker = CircuitBreaker(policy)
    breaker.failed(0)
    assert [breaker.allows(30) for _ in range(3)] == [True, True, False]
    breaker.succeeded()
    breaker.succeeded()
    assert breaker.state(31) == "half_open"
    assert breaker.allows(31)
    breaker.succeeded()
    assert breaker.state(31) == "closed"


def test_a_failure_among_probes_begins_the_count_of_successes_again():
    breaker = CircuitBreaker(BreakerPolicy(failures=1, open_seconds=30, successes=2, probes=2))
    breaker.failed(0)
    assert [breaker.allows(30), breaker.allows(30)] == [True, True]
    breaker.succeeded()
    breaker.failed(31)
    assert not breaker.allows(60.9)
    assert breaker.allows(61)
    breaker.succeeded()
    assert breaker.state(61) == "half_open"


@pytest.mark.parametrize(
    "wrong", [{"failures": 0}, {"open_seconds": 0}, {"successes": 0}, {"probes": 0}]
)
def test_a_breaker_that_never_opens_or_never_stays_open_is_refused(wrong):
    with pytest.raises(InvalidRequest, match="breaker"):
        BreakerPolicy(**wrong)
