"""Bugs put in on purpose: each must be caught by the named test that guards against it."""

import random
import threading
import time
from pathlib import Path

import pytest

from contracts.broker import test_commit
from forebay.broker.embedded import bells, groups, producer
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.probe import RecordingProbe
from torture import storage_rounds


def wake_up_seconds(open_broker, send) -> float:
    """How late a reader hears of a record that came between its look and its wait."""
    probe = RecordingProbe()
    broker = open_broker(probe=probe)
    broker.admin().create_topic(TopicSpec("orders"))
    reader = broker.consumer(None)
    reader.assign({TopicPartition("orders", 0): 0})
    stored_at = []

    def store_in_the_gap() -> None:
        probe.clear("consumer.before_waiting")
        storing = threading.Thread(target=send, args=(broker, "orders", [b"x"]))
        storing.start()
        storing.join()
        stored_at.append(time.monotonic())

    probe.plant("consumer.before_waiting", store_in_the_gap)
    assert [record.value for record in reader.poll(5)] == [b"x"]
    return time.monotonic() - stored_at[0]


def test_a_record_that_comes_between_look_and_wait_wakes_the_reader_at_once(open_broker, send):
    assert wake_up_seconds(open_broker, send) < 0.1


def test_a_bell_that_is_silenced_after_the_look_is_caught(open_broker, send, monkeypatch):
    class Forgetful(bells.Bell):
        def wait(self, seconds):
            super().wait(0)
            super().wait(seconds)

    monkeypatch.setattr(bells, "Bell", Forgetful)
    assert wake_up_seconds(open_broker, send) > 0.1


def test_a_reader_without_a_fifo_still_wakes_within_its_polling_pause(
    open_broker, send, monkeypatch
):
    class NoFifo:
        def __init__(self, folder):
            raise OSError("this system has no FIFOs")

    monkeypatch.setattr(bells, "Bell", NoFifo)
    assert wake_up_seconds(open_broker, send) < 0.1


def test_a_commit_without_a_fence_is_caught_by_the_contract(broker, monkeypatch):
    def unfenced(transaction, group_id, member_id, claims, offsets):
        rows = [
            (group_id, transaction.value("SELECT id FROM partition"), o.offset, o.metadata)
            for o in offsets.values()
        ]
        groups._store(transaction, rows)
        return {}

    stale_commit = (
        test_commit.test_a_commit_from_an_old_generation_is_refused_as_fenced_and_has_no_effect
    )
    monkeypatch.setattr(groups, "commit", unfenced)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        stale_commit(broker, "group")


def lost_to_power_cuts(home: Path, rounds: int) -> int:
    lost = 0
    for number in range(rounds):
        folder = home / str(number)
        folder.mkdir()
        lost += storage_rounds.power_cut(folder, seed=number).lost
    return lost


def test_power_cuts_lose_nothing_that_was_acknowledged(tmp_path):
    assert lost_to_power_cuts(tmp_path, rounds=12) == 0


def test_an_acknowledgement_before_the_commit_is_caught(tmp_path, monkeypatch):
    class Hasty(producer._Batch):
        __slots__ = ()

        def apply(self, transaction):
            super().apply(transaction)
            super().settle(None)

        def settle(self, error):
            pass

    monkeypatch.setattr(producer, "_Batch", Hasty)
    assert lost_to_power_cuts(tmp_path, rounds=12) > 0


def test_the_order_of_random_gaps_never_repeats_an_offset(open_broker, topic, send):
    broker = open_broker(gaps=random.Random(1))
    for _ in range(5):
        send(broker, topic, [b"x"] * 100)
    reader = broker.consumer(None)
    reader.assign({TopicPartition(topic, 0): 0})
    offsets = [record.offset for record in reader.poll(1, max_records=1_000)]
    assert len(offsets) == 500
    assert offsets == sorted(set(offsets))
    assert offsets[-1] > 499
    assert reader.at_end(TopicPartition(topic, 0))


def test_many_outstanding_sends_of_one_thread_come_back_in_order(broker, topic):
    sender = broker.producer()
    for number in range(1_000):
        sender.send(Record(b"x", topic=topic, partition=0), number)
    assert [report.token for report in sender.close()] == list(range(1_000))
