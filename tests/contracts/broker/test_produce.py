import os
import time
from collections import Counter

import pytest

from contracts.broker.adapters import DURABLE, case
from contracts.broker.stories import (
    PATIENCE_SECONDS,
    new_topic,
    numbered,
    partitions_of,
    produce,
    read_from_start,
    values,
)
from forebay.broker.settings import ProducerSettings
from forebay.core.errors import Closed, Full, OutcomeUnknown, RecordTooLarge, UnknownPartition
from forebay.core.records import Record, TopicPartition, size_bytes
from forebay.testing.waiting import eventually

# What Kafka's Java client chooses out of twelve partitions.
JAVA_CHOOSES = {
    b"21": 0,
    b"foobar": 6,
    b"abc": 3,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": 5,
}


def reports_of(producer, count):
    reports = []

    def all_came():
        reports.extend(producer.poll(0.1))
        return len(reports) >= count

    eventually(all_came, within_seconds=PATIENCE_SECONDS)
    return reports


@case(7)
def test_an_acknowledgement_tells_partition_offset_and_time(broker):
    topic = new_topic(broker, partitions=2)
    producer = broker.producer()
    token = object()
    before_ms = time.time() * 1000 - 1
    producer.send(Record(b"value", topic=topic, partition=1), token)
    assert producer.outstanding == 1
    (report,) = reports_of(producer, 1)
    assert (report.token, report.topic, report.partition, report.error) == (token, topic, 1, None)
    assert report.offset >= 0
    assert before_ms <= report.timestamp_ms <= time.time() * 1000 + 1
    assert producer.outstanding == 0


@case(8)
def test_offsets_of_a_partition_only_grow(broker):
    topic = new_topic(broker, partitions=2)
    reports = produce(
        broker, [Record(b"x", topic=topic, partition=number % 2) for number in range(60)]
    )
    for partition in (0, 1):
        offsets = [report.offset for report in reports if report.partition == partition]
        assert len(offsets) == 30
        assert offsets == sorted(set(offsets))


@case(9)
def test_a_key_goes_where_the_java_client_sends_it(broker):
    topic = new_topic(broker, partitions=12)
    reports = produce(broker, [Record(b"x", key=key, topic=topic) for key in JAVA_CHOOSES])
    assert [report.partition for report in reports] == list(JAVA_CHOOSES.values())


@case(10)
def test_records_without_a_key_spread_over_all_partitions(broker):
    topic = new_topic(broker, partitions=4)
    seen = Counter()

    def all_seen():
        reports = produce(broker, [Record(b"x", topic=topic) for _ in range(20)])
        seen.update(report.partition for report in reports)
        return len(seen) == 4

    eventually(all_seen)


@case(11)
def test_a_record_with_a_partition_goes_there_whatever_its_key(broker):
    topic = new_topic(broker, partitions=3)
    records = [
        Record(b"%d" % number, key=b"same", topic=topic, partition=number % 3)
        for number in range(9)
    ]
    produce(broker, records)
    stored = read_from_start(broker, partitions_of(topic, 3))
    assert {(r.value, r.partition) for r in stored} == {(r.value, r.partition) for r in records}


@case(12)
def test_a_partition_that_does_not_exist_is_refused_and_nothing_is_stored(broker, admin):
    topic = new_topic(broker, partitions=2)
    producer = broker.producer()
    with pytest.raises(UnknownPartition, match=topic):
        producer.send(Record(b"x", topic=topic, partition=2))
    with pytest.raises(UnknownPartition, match=topic):
        producer.send_many(
            [Record(b"x", topic=topic, partition=0), Record(b"x", topic=topic, partition=7)]
        )
    assert producer.close() == []
    assert set(admin.watermarks(partitions_of(topic, 2)).values()) == {(0, 0)}


@case(13)
def test_nothing_and_empty_and_binary_stay_three_different_things(broker):
    topic = new_topic(broker)
    kinds = (None, b"", b"\x00\xff\n\x80")
    sent = [(key, value) for key in kinds for value in kinds]
    produce(broker, [Record(value, key=key, topic=topic, partition=0) for key, value in sent])
    stored = read_from_start(broker, [TopicPartition(topic, 0)])
    assert [(record.key, record.value) for record in stored] == sent


@case(14)
def test_headers_keep_order_repeats_nothing_and_bytes(broker):
    topic = new_topic(broker)
    headers = [("b", b"1"), ("a", None), ("b", b"2"), ("a", b""), ("ü", b"\x00\xff"), ("", b"x")]
    produce(broker, [Record(b"with", headers=headers, topic=topic), Record(b"no", topic=topic)])
    with_headers, without = read_from_start(broker, [TopicPartition(topic, 0)])
    assert list(with_headers.headers) == headers
    assert list(without.headers) == []


@case(15)
def test_a_timestamp_that_was_given_is_kept(broker):
    topic = new_topic(broker)
    an_hour_ago = int(time.time() * 1000) - 3_600_000
    (report,) = produce(broker, [Record(b"x", topic=topic, timestamp_ms=an_hour_ago)])
    (stored,) = read_from_start(broker, [TopicPartition(topic, 0)])
    assert report.timestamp_ms == stored.timestamp_ms == an_hour_ago


@case(16)
def test_a_record_over_the_limit_is_refused_and_takes_no_other_down(broker):
    topic = new_topic(broker)
    small = Record(b"small", topic=topic, partition=0)
    large = small._replace(value=bytes(broker.record_bytes_max + 1))
    producer = broker.producer()
    producer.send(small)
    with pytest.raises(RecordTooLarge, match=topic):
        producer.send(large)
    with pytest.raises(RecordTooLarge, match=topic):
        producer.send_many([small, large, small])
    producer.send(small)
    assert [report.error for report in producer.close()] == [None, None]
    assert len(read_from_start(broker, [TopicPartition(topic, 0)])) == 2


@case(17)
def test_a_record_of_exactly_the_limit_passes(broker):
    topic = new_topic(broker)
    record = Record(b"", key=b"key", headers=[("name", b"value")], topic=topic, partition=0)
    room = broker.record_bytes_max - size_bytes(record)
    largest = record._replace(value=os.urandom(room))
    produce(broker, [largest])
    (stored,) = read_from_start(broker, [TopicPartition(topic, 0)])
    assert size_bytes(stored) == broker.record_bytes_max
    assert stored.value == largest.value


@case(18)
def test_many_sent_at_once_keep_their_order_per_key(broker):
    topic = new_topic(broker, partitions=3)
    records = [Record(b"%d" % n, key=b"k%d" % (n % 5), topic=topic) for n in range(300)]
    producer = broker.producer()
    assert producer.send_many(records, "batch") == 300
    reports = producer.close(PATIENCE_SECONDS)
    assert [(r.token, r.error) for r in reports] == [("batch", None)] * 300
    stored = read_from_start(broker, partitions_of(topic, 3))
    for key in {record.key for record in records}:
        in_order = [record.value for record in records if record.key == key]
        assert [record.value for record in stored if record.key == key] == in_order


@case(19)
def test_a_thousand_outstanding_sends_are_each_acknowledged_once(broker):
    topic = new_topic(broker, partitions=4)
    producer = broker.producer()
    for number in range(1000):
        producer.send(Record(b"%d" % number, topic=topic, partition=number % 4), number)
    assert producer.outstanding == 1000
    reports = reports_of(producer, 1000) + producer.close()
    assert sorted(report.token for report in reports) == list(range(1000))
    assert {report.error for report in reports} == {None}
    stored = values(read_from_start(broker, partitions_of(topic, 4)))
    assert Counter(stored) == Counter(b"%d" % number for number in range(1000))


@case(20, DURABLE, own=True)
def test_a_send_without_an_answer_is_unknown_and_never_a_success(adapter, broker):
    topic = new_topic(broker)
    producer = broker.producer(ProducerSettings(delivery_timeout_seconds=1.0))
    producer.send(Record(b"before", topic=topic, partition=0), "before")
    assert [report.error for report in reports_of(producer, 1)] == [None]
    with adapter.silenced():
        producer.send(Record(b"unanswered", topic=topic, partition=0), "unanswered")
        reports = reports_of(producer, 1)
    assert [(r.token, type(r.error)) for r in reports] == [("unanswered", OutcomeUnknown)]
    eventually(lambda: _send_and_hear(producer, Record(b"after", topic=topic, partition=0)))
    stored = values(read_from_start(broker, [TopicPartition(topic, 0)]))
    assert stored.count(b"unanswered") <= 1
    assert stored[0] == b"before"
    assert set(stored[1:]) - {b"unanswered"} == {b"after"}


def _send_and_hear(producer, record):
    """A client that just lost its broker may need a second send; unknown is all it may say."""
    producer.send(record, record.value)
    (report,) = reports_of(producer, 1)
    assert report.token == record.value
    assert report.error is None or type(report.error) is OutcomeUnknown
    return report.error is None


@case(21)
def test_a_full_buffer_says_so_at_once_and_loses_nothing(broker):
    topic = new_topic(broker)
    producer = broker.producer(ProducerSettings(pending_records_max=10))
    reports, refusals = [], 0
    for record in numbered(topic, 35):
        try:
            producer.send(record, record.value)
        except Full:
            refusals += 1
            assert producer.outstanding == 10
            reports += reports_of(producer, 1)
            producer.send(record, record.value)
    assert refusals >= 1
    reports += producer.close(PATIENCE_SECONDS)
    assert {report.error for report in reports} == {None}
    assert Counter(report.token for report in reports) == Counter(b"%d" % n for n in range(35))
    stored = read_from_start(broker, [TopicPartition(topic, 0)])
    assert values(stored) == [b"%d" % number for number in range(35)]


@case(22)
def test_closing_reports_every_record_that_was_sent(broker):
    topic = new_topic(broker)
    producer = broker.producer()
    for record in numbered(topic, 100):
        producer.send(record, record.value)
    reports = producer.close(PATIENCE_SECONDS)
    assert [report.token for report in reports] == [b"%d" % number for number in range(100)]
    assert {report.error for report in reports} == {None}
    assert producer.close() == []
    with pytest.raises(Closed):
        producer.send(Record(b"late", topic=topic))
    assert len(read_from_start(broker, [TopicPartition(topic, 0)])) == 100
