import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer as TransactionalProducer

from contracts.broker.stories import (
    QUICK,
    new_topic,
    numbered,
    partitions_of,
    produce,
    read,
    unique,
    values,
)
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import Closed, OffsetOutOfRange, UnknownPartition, UnknownTopic
from forebay.core.records import Record, TopicPartition, size_bytes
from forebay.testing.waiting import eventually
from kafka.members import Member


@pytest.fixture
def reader(kafka_broker):
    consumer = kafka_broker.consumer(None)
    yield consumer
    consumer.close()


def resident_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def test_transaction_markers_are_gaps_and_the_end_lies_behind_the_last_of_them(
    kafka, kafka_broker, reader
):
    topic = new_topic(kafka_broker)
    writer = TransactionalProducer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic, "log_level": 0}
    )
    writer.init_transactions(10)
    for count, kept in [(3, True), (2, False), (1, True), (1, False)]:
        writer.begin_transaction()
        for number in range(count):
            writer.produce(topic, b"%d" % number)
        writer.flush(10)
        (writer.commit_transaction if kept else writer.abort_transaction)(10)
    partition = TopicPartition(topic, 0)
    reader.assign({partition: 0})
    assert [record.offset for record in read(reader, 4)] == [0, 1, 2, 7]
    eventually(lambda: reader.poll(0.05) or reader.at_end(partition))
    assert reader.position(partition) == reader.watermarks(partition).end == 11
    reader.seek(partition, 9)
    assert reader.position(partition) == 9
    eventually(lambda: reader.poll(0.05) or reader.at_end(partition))
    assert reader.position(partition) == 11


def test_a_partition_is_no_longer_at_its_end_once_more_was_delivered(kafka_broker, reader):
    topic = new_topic(kafka_broker)
    partition = TopicPartition(topic, 0)
    reader.assign({partition: 0})
    assert not reader.at_end(partition)
    eventually(lambda: reader.poll(0.05) or reader.at_end(partition))
    produce(kafka_broker, numbered(topic, 5))
    first = reader.poll(5, max_records=2)
    assert not reader.at_end(partition)
    assert len(first) + len(read(reader, 5 - len(first))) == 5
    eventually(lambda: reader.poll(0.05) or reader.at_end(partition))


def test_a_batch_keeps_to_its_bytes_and_what_is_held_back_obeys_pause_and_seek(
    kafka_broker, reader
):
    topic = new_topic(kafka_broker, 2)
    produce(kafka_broker, [
        Record(b"x" * 1_000, b"key", [("name", b"value")], topic, number % 2)
        for number in range(40)
    ])  # fmt: skip
    zero, one = partitions_of(topic, 2)
    reader.assign({zero: 0, one: 0})
    batch = eventually(lambda: reader.poll(0.5, max_bytes=3_100))
    assert sum(size_bytes(record) for record in batch) <= 3_100
    reader.pause([zero])
    rest = [record for _ in range(20) for record in reader.poll(0.02, max_bytes=3_100)]
    assert {record.partition for record in rest} == {1}
    reader.seek(one, 18)
    reader.resume([zero])
    of_zero = [record.offset for record in batch if record.partition == 0]
    of_one = []
    while len(of_zero) < 20 or len(of_one) < 2:
        for record in reader.poll(0.5, max_bytes=3_100):
            (of_one if record.partition else of_zero).append(record.offset)
    assert (of_zero, of_one) == (list(range(20)), [18, 19])


def test_a_record_above_max_bytes_is_delivered_alone(kafka_broker, reader):
    topic = new_topic(kafka_broker)
    produce(kafka_broker, [Record(b"x" * 5_000, topic=topic) for _ in range(3)])
    reader.assign({TopicPartition(topic, 0): 0})
    batches = [eventually(lambda: reader.poll(0.5, max_bytes=100)) for _ in range(3)]
    assert [len(batch) for batch in batches] == [1, 1, 1]


def test_prefetching_is_bounded_and_does_not_starve_the_fetcher(kafka_broker):
    topic = new_topic(kafka_broker)
    producer = kafka_broker.producer()
    for _ in range(60):
        assert producer.send_many([Record(b"x" * 10_000, topic=topic)] * 100) == 100
        producer.flush(10)
        producer.poll(0)
    producer.close()
    reader = kafka_broker.consumer(None, ConsumerSettings(prefetch_bytes_max=2**20))
    reader.assign({TopicPartition(topic, 0): 0})
    before = resident_mib()
    taken = len(reader.poll(5, max_records=1))
    peak = before
    for _ in range(10):
        taken += len(reader.poll(0, max_records=1))
        peak = max(peak, resident_mib())
        time.sleep(0.05)  # the fetcher's chance to fetch too much
    assert peak - before < 24
    started = time.monotonic()
    taken += len(read(reader, 6_000 - taken))
    assert taken == 6_000
    assert time.monotonic() - started < 6
    reader.close()


def test_an_unknown_topic_in_a_subscription_is_told_within_about_a_second(kafka_broker):
    member = Member(kafka_broker, unique("group")).join(unique("nowhere"))
    started = time.monotonic()
    member.until(lambda: member.errors)
    assert isinstance(member.errors[0], UnknownTopic)
    assert time.monotonic() - started < 1.5
    member.consumer.close()


def test_reading_by_hand_what_does_not_exist_is_refused_at_once(kafka_broker, reader):
    topic = new_topic(kafka_broker)
    with pytest.raises(UnknownTopic):
        reader.assign({TopicPartition(unique("nowhere"), 0): 0})
    with pytest.raises(UnknownPartition, match="it has 1"):
        reader.assign({TopicPartition(topic, 1): 0})


def test_a_topic_that_is_deleted_under_a_reader_is_told_once_instead_of_silence(kafka_broker):
    topic = new_topic(kafka_broker)
    reader = kafka_broker.consumer(None, QUICK)
    reader.assign({TopicPartition(topic, 0): 0})
    assert reader.poll(0.1) == []
    kafka_broker.admin().delete_topic(topic)
    told = []
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        try:
            reader.poll(0.1)
        except UnknownTopic as error:
            told.append(str(error))
    assert len(told) == 1
    assert topic in told[0]
    reader.close()


@pytest.mark.parametrize("wrong", [-5, 4, 1_000])
def test_an_offset_outside_the_log_is_told_once_and_the_neighbour_goes_on(
    kafka_broker, reader, wrong
):
    topic = new_topic(kafka_broker, 2)
    produce(kafka_broker, numbered(topic, 3, 0) + numbered(topic, 3, 1))
    zero, one = partitions_of(topic, 2)
    reader.assign({zero: wrong, one: 0})
    told, records = [], []
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        try:
            records += reader.poll(0.1)
        except OffsetOutOfRange as error:
            told.append((error.partition, error.offset, error.low, error.high))
    assert told == [(zero, wrong, 0, 3)]
    assert [record.partition for record in records] == [1, 1, 1]
    assert reader.position(zero) == wrong
    reader.seek(zero, 1)
    assert values(read(reader, 2)) == [b"1", b"2"]


def test_a_consumer_belongs_to_the_thread_that_used_it_first(kafka_broker, reader):
    reader.poll(0)
    told = []

    def meddle():
        try:
            reader.poll(0)
        except Closed as error:
            told.append(str(error))

    meddler = threading.Thread(target=meddle)
    meddler.start()
    meddler.join()
    assert "belongs to the thread that used it first" in told[0]
    assert reader.poll(0) == []


def test_closing_from_a_signal_handler_ends_a_poll_and_hands_the_partitions_over(kafka_broker):
    topic = new_topic(kafka_broker)
    member = Member(kafka_broker, unique("group"), replace(QUICK)).join(topic)
    member.until(lambda: member.owns(1))
    before = signal.signal(signal.SIGUSR1, lambda *_: member.consumer.close())
    killer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    killer.start()
    started = time.monotonic()
    try:
        assert member.consumer.poll(20) == []
    finally:
        killer.join()
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - started < 2
    assert member.revoked_calls == [[TopicPartition(topic, 0)]]
    with pytest.raises(Closed):
        member.consumer.poll(0)
