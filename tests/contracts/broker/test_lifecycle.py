import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

import pytest

from contracts.broker.adapters import DURABLE, case
from contracts.broker.processes import Process
from contracts.broker.stories import (
    Member,
    new_topic,
    numbered,
    produce,
    read_from_start,
    take_turns,
    values,
)
from forebay.core.errors import Closed
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.testing.waiting import eventually


@contextmanager
def signalled_soon(action):
    """Run `action` in a signal handler of the main thread, a moment from now."""
    before = signal.signal(signal.SIGUSR1, lambda *_: action())
    main = threading.main_thread().ident
    ringing = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGUSR1))
    ringing.start()
    try:
        yield
    finally:
        ringing.join()
        signal.signal(signal.SIGUSR1, before)


@case(56, DURABLE, own=True)
def test_a_kill_between_write_and_acknowledgement_stores_each_record_once(adapter, broker):
    topic = new_topic(broker)
    with Process("produce", adapter.url, topic) as writer:
        writer.wait_for("acked", 200)
        adapter.crash(writer)
        writer.finish()
        acked = {b"%d" % number for number in writer.all_said("acked")}
    stored = values(read_from_start(broker, [TopicPartition(topic, 0)]))
    assert [value for value, times in Counter(stored).items() if times > 1] == []
    assert acked - set(stored) == set()
    assert stored == sorted(stored, key=int)


@case(57)
def test_closing_twice_from_a_signal_or_from_inside_ends_the_poll_and_never_hangs(
    broker, admin, group
):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    produce(broker, numbered(topic, 3))
    waiting = Member(broker, group, [topic])
    take_turns(waiting, until=lambda: len(waiting.records) == 3)
    committed = CommittedOffset(waiting.records[1].offset)
    waiting.consumer.commit({partition: committed})
    started = time.monotonic()
    with signalled_soon(waiting.consumer.close):
        assert waiting.consumer.poll(20) == []
    assert time.monotonic() - started < 5
    assert waiting.all_told("revoked") == {partition}
    waiting.consumer.close()
    with pytest.raises(Closed):
        waiting.consumer.poll(0)

    inside = Member(broker, group, [topic])
    take_turns(inside, until=lambda: inside.owns)
    assert inside.started_at == {partition: committed}
    inside.when_revoked = lambda _: inside.consumer.close()
    inside.consumer.close()
    inside.consumer.close()
    assert admin.describe_group(group).members == ()

    assert_a_signal_ends_the_poll_of_a_producer(broker, topic)
    broker.close()
    broker.close()


def assert_a_signal_ends_the_poll_of_a_producer(broker, topic):
    producer = broker.producer()
    producer.send(Record(b"x", topic=topic, partition=0), "reported once")
    handed_out, signalled = [], []

    def close():
        signalled.append(time.monotonic())
        handed_out.extend(producer.close())

    def poll_until_signalled():
        with suppress(Closed):
            handed_out.extend(producer.poll(20))
        return signalled

    with signalled_soon(close):
        eventually(poll_until_signalled)
    assert time.monotonic() - signalled[0] < 5
    handed_out += producer.close()
    assert producer.close() == []
    assert [(report.token, report.error) for report in handed_out] == [("reported once", None)]


@case(58, DURABLE, own=True)
def test_clients_outlive_a_restart_under_load_and_nothing_acknowledged_is_missing(
    adapter, broker, group
):
    topic = new_topic(broker)
    reader = Member(broker, group, [topic])
    reader.forgiving = True
    with Process("produce", adapter.url, topic) as writer:
        take_turns(reader, until=lambda: len(reader.records) > 200)
        adapter.restart()
        before = len(writer.all_said("acked"))
        take_turns(reader, until=lambda: len(writer.all_said("acked")) > before + 200)
        writer.finish()
        acked = {b"%d" % number for number in writer.all_said("acked")}
    take_turns(reader, until=lambda: acked <= set(values(reader.records)))
    reader.commit_all()
    stored = values(read_from_start(broker, [TopicPartition(topic, 0)]))
    assert stored == sorted(set(stored), key=int)
    assert acked <= set(stored)
