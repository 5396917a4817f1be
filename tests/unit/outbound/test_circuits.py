import pytest

from forebay.core.breaker import BreakerPolicy
from forebay.outbound.circuits import Circuits
from forebay.outbound.errors import DownloadFailed
from forebay.testing import FakeClock


class Told:
    def __init__(self):
        self.events = []

    def __call__(self, event, **fields):
        self.events.append((event, fields["host"]))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def circuits(clock, told):
    policy = BreakerPolicy(failures=2, open_seconds=30)
    return Circuits(policy, clock, told, DownloadFailed)


def failure(kind):
    return DownloadFailed(kind, "It failed.")


def open_one(circuits, host="bad.example"):
    circuits.failed(host, failure("server_error"))
    circuits.failed(host, failure("timeout"))


def test_an_open_circuit_says_when_to_come_again_and_others_stay_closed(circuits, clock, told):
    open_one(circuits)
    clock.advance(10)
    with pytest.raises(DownloadFailed) as refused:
        circuits.check("bad.example")
    assert (refused.value.category, refused.value.retry_after_seconds) == ("circuit_open", 20)
    circuits.check("good.example")
    assert told.events == [("circuit.opened", "bad.example")]


def test_what_is_wrong_with_one_link_opens_nothing(circuits):
    for kind in ("not_found", "wrong_type", "empty_file", "expired", "target_busy"):
        circuits.failed("bad.example", failure(kind))
        circuits.failed("bad.example", failure(kind))
    circuits.check("bad.example")


def test_an_answer_that_a_link_is_bad_closes_a_circuit_too(circuits, clock, told):
    open_one(circuits)
    clock.advance(30)
    circuits.check("bad.example")
    circuits.failed("bad.example", failure("not_found"))
    circuits.check("bad.example")
    assert told.events[-1] == ("circuit.closed", "bad.example")


def test_a_success_closes_it_and_forgets_the_host(circuits, clock):
    open_one(circuits)
    clock.advance(30)
    circuits.check("bad.example")
    circuits.succeeded("bad.example")
    circuits.check("bad.example")
    assert circuits._breakers == {}


def test_hosts_without_end_do_not_fill_the_memory_and_open_ones_are_kept(circuits):
    open_one(circuits)
    for number in range(2_000):
        circuits.failed(f"{number}.example", failure("dns"))
    assert len(circuits._breakers) <= 1_024
    with pytest.raises(DownloadFailed):
        circuits.check("bad.example")
