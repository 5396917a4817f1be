import pytest

from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.operations.unread import unread_findings
from forebay.testing import FakeClock, MemoryBroker


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def broker(clock):
    broker = MemoryBroker(clock)
    for topic in ("orders", "orders-charge.dlq", "orders-charge.retry.5m"):
        broker.admin().create_topic(TopicSpec(topic))
        broker.producer().send(Record(b"x", topic=topic))
    return broker


def found(broker, clock):
    findings = unread_findings(broker, int(clock.now() * 1000))
    return {finding.check: finding.do for finding in findings}


def test_dead_letters_that_nobody_reads_for_a_minute_are_a_finding(broker, clock):
    clock.advance(60)
    assert found(broker, clock) == {}
    clock.advance(2)
    ((check, do),) = found(broker, clock).items()
    assert check == "topic orders-charge.dlq"
    assert "dlq-handler" in do


def test_a_retry_has_its_delay_before_it_counts_as_unread(broker, clock):
    clock.advance(359)
    assert "topic orders-charge.retry.5m" not in found(broker, clock)
    clock.advance(3)
    assert "retry-scheduler" in found(broker, clock)["topic orders-charge.retry.5m"]


def test_what_a_group_has_committed_is_read(broker, clock):
    clock.advance(1_000)
    dlq, tier = TopicPartition("orders-charge.dlq", 0), TopicPartition("orders-charge.retry.5m", 0)
    broker.consumer("reader").commit({dlq: CommittedOffset(1), tier: CommittedOffset(0)})
    assert found(broker, clock).keys() == {"topic orders-charge.retry.5m"}
