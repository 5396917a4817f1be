import threading
import time
from statistics import median

from contracts.broker.adapters import case
from contracts.broker.stories import (
    PATIENCE_SECONDS,
    Member,
    new_topic,
    numbered,
    partitions_of,
    produce,
    raised_by_polling,
    read,
    take_turns,
    unique,
    values,
)
from forebay.core.records import CommittedOffset, Record, TopicPartition, size_bytes
from forebay.testing.waiting import eventually


def reading(broker, topic, offset=None):
    """A reader by hand of partition 0, from the start unless told."""
    partition = TopicPartition(topic, 0)
    consumer = broker.consumer(None)
    start = consumer.watermarks(partition).low if offset is None else offset
    consumer.assign({partition: start})
    return consumer, partition


def poll_until_at_end(consumer, partition):
    eventually(lambda: consumer.poll(0.05) == [] and consumer.at_end(partition))


@case(23)
def test_a_member_without_a_commit_starts_where_it_says_earliest_or_latest(broker):
    topic = new_topic(broker)
    produce(broker, numbered(topic, 3))
    early = Member(broker, unique("early"), [topic], start="earliest")
    late = Member(broker, unique("late"), [topic], start="latest")
    take_turns(early, late, until=lambda: early.owns and late.owns)
    produce(broker, numbered(topic, 2, first=3))
    take_turns(early, late, until=lambda: len(early.records) >= 5 and len(late.records) >= 2)
    assert values(early.records) == [b"0", b"1", b"2", b"3", b"4"]
    assert values(late.records) == [b"3", b"4"]


@case(24)
def test_a_seek_goes_to_the_beginning_to_an_offset_and_to_the_end(broker):
    topic = new_topic(broker)
    offsets = [report.offset for report in produce(broker, numbered(topic, 6))]
    consumer, partition = reading(broker, topic)
    assert values(read(consumer, 6)) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    consumer.seek(partition, offsets[4])
    assert consumer.position(partition) == offsets[4]
    assert values(read(consumer, 2)) == [b"4", b"5"]
    consumer.seek(partition, consumer.watermarks(partition).low)
    assert values(read(consumer, 6))[0] == b"0"
    consumer.seek(partition, offsets[2])
    consumer.seek(partition, consumer.watermarks(partition).end)
    assert consumer.poll(0.2) == []
    produce(broker, numbered(topic, 1, first=6))
    assert values(read(consumer, 1)) == [b"6"]


@case(25)
def test_the_committed_offset_is_the_next_one_to_read(broker, group):
    topic = new_topic(broker)
    produce(broker, numbered(topic, 6))
    first = Member(broker, group, [topic])
    take_turns(first, until=lambda: len(first.records) == 6)
    third = first.records[2]
    first.consumer.commit({third.at: CommittedOffset(third.offset + 1)})
    first.consumer.close()
    second = Member(broker, group, [topic])
    take_turns(second, until=lambda: len(second.records) >= 3)
    assert second.started_at[third.at].offset == third.offset + 1
    assert values(second.records) == [b"3", b"4", b"5"]


@case(26)
def test_an_offset_below_the_log_raises_once_and_moves_nothing(broker, admin):
    topic = new_topic(broker, partitions=2)
    other = TopicPartition(topic, 1)
    reports = produce(broker, numbered(topic, 6))
    partition = TopicPartition(topic, 0)
    low = admin.trim({partition: reports[3].offset})[partition]
    assert reports[2].offset < low <= reports[3].offset
    consumer = broker.consumer(None)
    consumer.assign({partition: 0, other: 0})
    error, more = raised_by_polling(consumer)
    end = consumer.watermarks(partition).end
    assert (error.partition, error.offset, error.low, error.high) == (partition, 0, low, end)
    assert more == []
    assert consumer.position(partition) == 0
    produce(broker, numbered(topic, 1, partition=1, first=9))
    assert values(read(consumer, 1)) == [b"9"]
    consumer.seek(partition, low)
    assert values(read(consumer, 3)) == [b"3", b"4", b"5"]


@case(27)
def test_an_offset_beyond_the_end_raises_once_and_does_not_jump(broker):
    topic = new_topic(broker)
    produce(broker, numbered(topic, 3))
    consumer, partition = reading(broker, topic)
    low, end = consumer.watermarks(partition)
    consumer.seek(partition, end + 1000)
    error, more = raised_by_polling(consumer)
    assert (error.partition, error.offset) == (partition, end + 1000)
    assert (error.low, error.high) == (low, end)
    assert more == []
    assert consumer.position(partition) == end + 1000
    consumer.seek(partition, end)
    produce(broker, numbered(topic, 1, first=3))
    assert values(read(consumer, 1)) == [b"3"]


@case(28)
def test_a_time_gives_the_first_offset_at_or_after_it(broker):
    topic = new_topic(broker)
    start_ms = int(time.time() * 1000) - 60_000
    reports = produce(
        broker,
        [Record(b"x", topic=topic, timestamp_ms=start_ms + 100 * n, partition=0) for n in range(3)],
    )
    offsets = [report.offset for report in reports]
    consumer, partition = reading(broker, topic)
    end = consumer.watermarks(partition).end
    asked_and_given = {-1: offsets[0], 0: offsets[0], 100: offsets[1], 101: offsets[2], 201: end}
    for after_ms, offset in asked_and_given.items():
        assert consumer.offset_for_time(partition, start_ms + after_ms) == offset


@case(29)
def test_watermarks_position_end_and_lag_agree(broker, admin, group):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    reports = produce(broker, numbered(topic, 5))
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.records) == 5)
    low, end = reader.consumer.watermarks(partition)
    assert (low, end) == admin.watermarks([partition])[partition]
    assert low <= reports[0].offset < reports[4].offset < end
    take_turns(reader, until=lambda: reader.consumer.at_end(partition))
    assert reader.consumer.position(partition) == end

    reader.consumer.commit({partition: CommittedOffset(reports[3].offset)})
    (position,) = admin.describe_group(group).positions
    assert (position.partition, position.watermarks) == (partition, (low, end))
    assert position.lag == end - reports[3].offset
    reader.consumer.commit({partition: CommittedOffset(end)})
    assert admin.describe_group(group).lag == 0


@case(30)
def test_a_pause_holds_one_partition_and_its_end_loses_and_repeats_nothing(broker):
    topic = new_topic(broker, partitions=2)
    held, free = partitions_of(topic, 2)
    consumer = broker.consumer(None)
    consumer.assign({held: 0, free: 0})
    produce(broker, numbered(topic, 5, partition=0) + numbered(topic, 5, partition=1))
    first = [record for record in read(consumer, 10) if record.at == held]
    consumer.pause([held])
    produce(broker, [*numbered(topic, 5, 0, first=5), *numbered(topic, 5, 1, first=5)])
    while_paused = read(consumer, 5) + consumer.poll(0.3)
    assert {record.at for record in while_paused} == {free}
    assert values(while_paused) == [b"5", b"6", b"7", b"8", b"9"]
    consumer.resume([held])
    first += read(consumer, 5)
    assert values(first) == [b"%d" % number for number in range(10)]
    assert consumer.poll(0.1) == []


@case(31)
def test_a_waiting_poll_returns_soon_after_a_record_or_at_its_timeout(adapter, broker):
    topic = new_topic(broker)
    consumer, partition = reading(broker, topic)
    poll_until_at_end(consumer, partition)
    delays = [_delay_of_a_wake_up(broker, consumer, topic) for _ in range(5)]
    assert median(delays) <= adapter.bounds.wake_up_seconds
    poll_until_at_end(consumer, partition)
    started = time.monotonic()
    assert consumer.poll(0.4) == []
    assert 0.39 <= time.monotonic() - started <= 0.4 + 0.3


def _delay_of_a_wake_up(broker, consumer, topic):
    stored_at = []

    def send():
        produce(broker, numbered(topic, 1))
        stored_at.append(time.monotonic())

    sending = threading.Timer(0.15, send)
    sending.start()
    assert len(consumer.poll(10)) == 1
    woken_at = time.monotonic()
    sending.join()
    return woken_at - stored_at[0]


@case(32)
def test_a_poll_keeps_to_its_limits_but_gives_at_least_one_record(broker):
    topic = new_topic(broker)
    produce(broker, [Record(bytes(1000), topic=topic, partition=0) for _ in range(20)])
    consumer, _ = reading(broker, topic)
    taken = []

    def poll(**limits):
        records = eventually(lambda: consumer.poll(0.1, **limits))
        taken.extend(records)
        return records

    while len(taken) < 14:
        assert len(poll(max_records=3)) <= 3
        assert sum(size_bytes(record) for record in poll(max_bytes=2500)) <= 2500
        assert len(poll(max_bytes=10)) == 1
    while len(taken) < 20:
        assert len(poll(max_records=1)) == 1
    offsets = [record.offset for record in taken]
    assert len(offsets) == 20
    assert offsets == sorted(set(offsets))


@case(33)
def test_a_partition_is_read_in_the_order_in_which_two_producers_wrote_it(broker):
    topic = new_topic(broker)
    producers = [broker.producer(), broker.producer()]
    for number in range(200):
        record = Record(b"%d" % (number // 2), key=b"%d" % (number % 2), topic=topic, partition=0)
        producers[number % 2].send(record, (record.key, record.value))
        for producer in producers if number % 20 == 0 else ():
            producer.flush(PATIENCE_SECONDS)
    reports = [report for producer in producers for report in producer.close(PATIENCE_SECONDS)]
    consumer, _ = reading(broker, topic)
    stored = read(consumer, 200)
    assert [record.offset for record in stored] == sorted(report.offset for report in reports)
    assert {r.offset: (r.key, r.value) for r in stored} == {r.offset: r.token for r in reports}
    for key in (b"0", b"1"):
        in_order = [b"%d" % number for number in range(100)]
        assert [record.value for record in stored if record.key == key] == in_order


@case(34)
def test_a_reader_never_sees_a_batch_with_holes(adapter, broker):
    topic = new_topic(broker, partitions=2)
    batches, size = 40, 20
    partitions = partitions_of(topic, 2)
    consumer = broker.consumer(None)
    consumer.assign(dict.fromkeys(partitions, 0))
    writing = threading.Thread(target=_write_batches, args=(broker, topic, batches, size))
    writing.start()
    records, looks = [], []

    def all_read():
        records.extend(consumer.poll(0.05, max_records=10_000))
        looks.append(len(records))
        return len(records) >= batches * size

    eventually(all_read, within_seconds=PATIENCE_SECONDS, every_seconds=0)
    writing.join()
    for partition in partitions:
        numbers = [int(record.value) for record in records if record.at == partition]
        assert numbers == list(range(partition.partition, batches * size, 2))
    if adapter.bounds.batches_appear_whole:
        for look, next_look in zip(looks, [*looks[1:], looks[-1]], strict=True):
            begun = {int(record.value) // size for record in records[:look]}
            seen = {int(record.value) for record in records[:next_look]}
            whole = {batch * size + place for batch in begun for place in range(size)}
            assert whole <= seen


def _write_batches(broker, topic, batches, size):
    producer = broker.producer()
    for batch in range(batches):
        numbers = range(batch * size, (batch + 1) * size)
        producer.send_many(
            [Record(b"%d" % number, topic=topic, partition=number % 2) for number in numbers]
        )
        producer.flush(PATIENCE_SECONDS)
    assert {report.error for report in producer.close(PATIENCE_SECONDS)} == {None}
