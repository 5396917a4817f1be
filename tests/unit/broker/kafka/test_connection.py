import time

import pytest
from confluent_kafka import KafkaError

from forebay.broker.kafka import connection as connection_module
from forebay.broker.kafka.connection import Connection
from forebay.core.errors import AccessDenied, Unavailable

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error")
DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


class Watch:
    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def watch(monkeypatch):
    watch = Watch()
    monkeypatch.setattr(connection_module, "time", watch)
    assert time.monotonic() != watch.monotonic()
    return watch


@pytest.fixture
def events():
    return []


@pytest.fixture
def connection(watch, events):
    return Connection("broker:9092", lambda event, **_: events.append(event))


def test_a_first_refusal_is_access_denied_at_once(connection, events):
    connection.on_error(REFUSED)
    with pytest.raises(AccessDenied, match="broker:9092"):
        connection.check()
    assert events == ["broker.refused"]


def test_one_refusal_of_who_was_let_in_before_is_a_blip_and_the_second_is_not(
    connection, watch, events
):
    connection.answered()
    connection.on_error(REFUSED)
    connection.check()
    watch.seconds += 1.2
    connection.on_error(REFUSED)
    with pytest.raises(AccessDenied):
        connection.check()
    assert events == ["broker.connected", "broker.refused"]


def test_an_answer_ends_a_refusal_and_is_told(connection, events):
    connection.on_error(REFUSED)
    connection.answered()
    connection.check()
    assert events == ["broker.refused", "broker.connected"]


def test_a_refusal_that_is_not_repeated_is_over(connection, watch):
    connection.on_error(REFUSED)
    watch.seconds += 10
    connection.check()


def test_a_broker_is_unavailable_only_after_the_time_of_a_restart(connection, watch, events):
    connection.answered()
    connection.on_error(DOWN)
    connection.check()
    watch.seconds += 5
    with pytest.raises(Unavailable, match="does not answer"):
        connection.check()
    connection.answered()
    connection.check()
    assert events == ["broker.connected", "broker.lost", "broker.connected"]
