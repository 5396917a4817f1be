"""What `MemoryBroker` has beyond the port: an injected clock and topics that refuse writes."""

import threading

import pytest

from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import Closed, InvalidRequest, Unavailable, UnknownGroup
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker

ORDERS = TopicPartition("orders", 0)


class Told:
    def __init__(self, consumer):
        self.calls = []
        self._consumer = consumer

    def assigned(self, committed):
        self.calls.append(("assigned", *committed))
        for partition in committed:
            self._consumer.seek(partition, 0)

    def revoked(self, partitions):
        self.calls.append(("revoked", *partitions))

    def lost(self, partitions):
        self.calls.append(("lost", *partitions))


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def broker(clock):
    broker = MemoryBroker(clock)
    broker.admin().create_topic(TopicSpec("orders"))
    return broker


def test_a_refused_topic_reports_unavailable_and_stores_nothing_until_it_is_accepted(broker):
    producer = broker.producer()
    broker.refuse_writes("orders")
    producer.send(Record(b"held", topic="orders"), "first")
    (refused,) = producer.poll(0)
    assert (refused.token, type(refused.error)) == ("first", Unavailable)
    assert broker.admin().watermarks([ORDERS])[ORDERS] == (0, 0)
    broker.accept_writes("orders")
    producer.send(Record(b"held", topic="orders"), "second")
    assert [report.error for report in producer.poll(0)] == [None]


def test_a_timestamp_is_the_injected_clocks(broker, clock):
    producer = broker.producer()
    clock.advance(5)
    producer.send(Record(b"x", topic="orders"))
    assert producer.poll(0)[0].timestamp_ms == clock.now() * 1000


def test_a_member_is_expelled_when_the_injected_clock_says_it_did_not_poll(broker, clock):
    settings = ConsumerSettings(poll_interval_max_seconds=300)
    hung, heir = (broker.consumer("group", settings) for _ in range(2))
    told = Told(hung)
    hung.subscribe(["orders"], told)
    heir.subscribe(["orders"], Told(heir))
    hung.poll(0)
    hung.commit({ORDERS: CommittedOffset(0)})
    heir.poll(0)
    clock.advance(299)
    heir.poll(0)
    assert heir.assignment == frozenset()
    clock.advance(2)
    heir.poll(0)
    assert heir.assignment == {ORDERS}
    hung.poll(0)
    assert told.calls == [("assigned", ORDERS), ("lost", ORDERS)]


def test_an_error_in_a_rebalance_call_comes_out_of_poll_after_the_change(broker):
    class Failing(Told):
        def assigned(self, committed):
            super().assigned(committed)
            raise RuntimeError("my own")

    consumer = broker.consumer("group")
    consumer.subscribe(["orders"], Failing(consumer))
    with pytest.raises(RuntimeError, match="my own"):
        consumer.poll(0)
    assert consumer.assignment == {ORDERS}


def test_a_rebalance_call_must_not_poll(broker):
    class Polling(Told):
        def assigned(self, committed):
            consumer.poll(0)

    consumer = broker.consumer("group")
    consumer.subscribe(["orders"], Polling(consumer))
    with pytest.raises(InvalidRequest, match="must not poll"):
        consumer.poll(0)


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_a_client_refuses_every_thread_but_its_first(broker, kind):
    client = broker.producer() if kind == "producer" else broker.consumer("group")
    client.poll(0)
    refusals = []

    def use():
        try:
            client.poll(0)
        except Closed as refusal:
            refusals.append(str(refusal))

    other = threading.Thread(target=use)
    other.start()
    other.join()
    assert len(refusals) == 1
    assert "thread" in refusals[0]


def test_a_deleted_topic_is_revoked_and_one_made_anew_is_assigned_from_its_start(broker):
    consumer = broker.consumer("group")
    told = Told(consumer)
    consumer.subscribe(["orders"], told)
    consumer.poll(0)
    broker.admin().delete_topic("orders")
    broker.admin().create_topic(TopicSpec("orders"))
    consumer.poll(0)
    assert told.calls == [("assigned", ORDERS), ("revoked", ORDERS), ("assigned", ORDERS)]


def test_asking_what_a_group_committed_does_not_found_it(broker):
    assert broker.consumer("curious").committed([ORDERS]) == {ORDERS: None}
    assert broker.admin().list_groups() == []
    with pytest.raises(UnknownGroup, match="curious"):
        broker.admin().describe_group("curious")
