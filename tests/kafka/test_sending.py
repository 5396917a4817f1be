import time

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from contracts.broker.stories import (
    new_topic,
    numbered,
    partitions_of,
    produce,
    read_from_start,
    unique,
    values,
)
from forebay.broker.settings import ProducerSettings
from forebay.core.errors import Full, OutcomeUnknown, RecordTooLarge, UnknownTopic
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.waiting import eventually


def limit_batches_of(cluster, topic, limit_bytes):
    client = AdminClient({"bootstrap.servers": cluster.bootstrap})
    entry = ConfigEntry(
        "max.message.bytes", str(limit_bytes), incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(10)


def test_a_full_buffer_answers_full_at_once_and_takes_more_after_a_poll(kafka_broker):
    topic = new_topic(kafka_broker)
    producer = kafka_broker.producer(ProducerSettings(pending_records_max=10, linger_seconds=0.2))
    producer.send(Record(b"first", topic=topic))
    started = time.monotonic()
    for _ in range(9):
        producer.send(Record(b"more", topic=topic))
    with pytest.raises(Full):
        producer.send(Record(b"one too many", topic=topic))
    assert time.monotonic() - started < 0.2
    assert producer.outstanding == 10
    producer.poll(5)
    producer.send(Record(b"after", topic=topic))
    producer.close()


def test_send_many_says_how_many_the_buffer_took(kafka_broker):
    topic = new_topic(kafka_broker)
    producer = kafka_broker.producer(ProducerSettings(pending_records_max=10, linger_seconds=0.2))
    assert producer.send_many(numbered(topic, 25)) == 10
    with pytest.raises(Full):
        producer.send_many(numbered(topic, 25))
    assert len(producer.close()) == 10


def test_an_unknown_topic_is_told_within_about_a_second(kafka_broker):
    producer = kafka_broker.producer()
    started = time.monotonic()
    with pytest.raises(UnknownTopic):
        producer.send(Record(b"x", topic=unique("nowhere")))
    assert time.monotonic() - started < 1.5
    producer.close()


def test_a_topic_deleted_between_two_sends_is_reported_and_may_come_back(kafka_broker):
    topic = new_topic(kafka_broker)
    producer = kafka_broker.producer(ProducerSettings(delivery_timeout_seconds=5))
    producer.send(Record(b"x", topic=topic))
    producer.flush(5)
    producer.poll(0)
    kafka_broker.admin().delete_topic(topic)

    def refused():
        try:
            producer.send(Record(b"x", topic=topic))
        except UnknownTopic:
            return True
        reports = producer.poll(1)
        return any(isinstance(report.error, UnknownTopic) for report in reports)

    eventually(refused)
    kafka_broker.admin().create_topic(TopicSpec(topic))
    producer.send(Record(b"again", topic=topic))
    assert [report.error for report in producer.close() if report.error is None]


def test_an_oversized_record_is_refused_and_its_neighbours_arrive(kafka, kafka_broker):
    topic = new_topic(kafka_broker)
    limit_batches_of(kafka, topic, 20_000)
    producer = kafka_broker.producer(ProducerSettings(linger_seconds=0.2))
    producer.send(Record(b"before", topic=topic))
    with pytest.raises(RecordTooLarge, match="neighbours are not affected"):
        producer.send(Record(b"x" * 20_000, topic=topic))
    producer.send(Record(b"after", topic=topic))
    assert [report.error for report in producer.close()] == [None, None]


def test_a_topic_that_takes_only_small_batches_refuses_none_of_many_good_records(
    kafka, kafka_broker
):
    topic = new_topic(kafka_broker)
    limit_batches_of(kafka, topic, 5_000)
    producer = kafka_broker.producer(ProducerSettings(linger_seconds=0.02))
    records = [Record(b"%04d" % number * 100, topic=topic) for number in range(200)]
    reports = []
    while records:
        try:
            del records[: producer.send_many(records)]
        except Full:
            reports += producer.poll(1)
    reports += producer.close()
    assert [report.error for report in reports] == [None] * 200
    found = values(read_from_start(kafka_broker, partitions_of(topic, 1)))
    assert found == [b"%04d" % number * 100 for number in range(200)]


def test_headers_keep_their_order_duplicates_and_nones(kafka_broker):
    topic = new_topic(kafka_broker)
    headers = [("a", b"1"), ("b", None), ("a", b""), ("a", b"\xff\x00")]
    produce(kafka_broker, [Record(None, b"", headers, topic), Record(b"", None, (), topic)])
    with_headers, without = read_from_start(kafka_broker, partitions_of(topic, 1))
    assert list(with_headers.headers) == headers
    assert (with_headers.value, with_headers.key) == (None, b"")
    assert list(without.headers) == []
    assert (without.value, without.key) == (b"", None)


def test_what_no_broker_answered_for_is_reported_once_as_unknown(own_kafka, own_broker):
    topic = new_topic(own_broker)
    producer = own_broker.producer()
    producer.send(Record(b"x", topic=topic), "known")
    assert [report.error for report in producer.poll(5)] == [None]
    own_kafka.nodes[0].kill()
    for token in range(3):
        producer.send(Record(b"x", topic=topic), token)
    reports = producer.close(0.3)
    assert {report.token: type(report.error) for report in reports} == dict.fromkeys(
        range(3), OutcomeUnknown
    )
    assert len(reports) == 3
    assert producer.close() == []
    assert producer.outstanding == 0


def test_a_killed_broker_that_comes_back_holds_every_acknowledged_record_once(
    own_kafka, own_broker
):
    topic = new_topic(own_broker)
    producer = own_broker.producer(ProducerSettings(delivery_timeout_seconds=60))
    reports = []
    for number in range(3_000):
        producer.send(Record(b"%d" % number, topic=topic), number)
        reports += producer.poll(0)
        if number in {700, 2_000}:
            own_kafka.nodes[0].kill()
        if number in {1_400, 2_700}:
            own_kafka.nodes[0].start()
    reports += producer.close(60)
    assert [report.error for report in reports] == [None] * 3_000
    found = values(read_from_start(own_broker, [TopicPartition(topic, 0)]))
    assert found == [b"%d" % number for number in range(3_000)]
