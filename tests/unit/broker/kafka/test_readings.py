import pytest

from forebay.broker.kafka.readings import Readings
from forebay.core.errors import InvalidRequest
from forebay.core.records import Record, TopicPartition

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
PLENTY = 2**20


def records(partition: int, *offsets: int) -> list[Record]:
    return [Record(b"x" * 10, b"", (), "orders", partition, offset) for offset in offsets]


def offsets(delivered: list[Record]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in delivered]


@pytest.fixture
def readings():
    readings = Readings()
    for at in (ZERO, ONE):
        readings.add(at)
        readings.move(at, 0)
    for _, reading in readings.moving():
        reading.started, reading.moving = True, False
    readings.settle()
    return readings


def test_what_exceeds_the_count_or_the_bytes_is_held_and_delivered_next(readings):
    assert offsets(readings.deliver(records(0, 0, 1, 2), 2, PLENTY)) == [(0, 0), (0, 1)]
    assert readings.first_held(ZERO) == 2
    assert offsets(readings.deliver(records(0, 3, 4), 500, 25)) == [(0, 2), (0, 3)]
    assert offsets(readings.deliver([], 500, 1)) == [(0, 4)]
    assert not readings.has_something_to_deliver()


def test_what_is_held_of_a_paused_partition_waits_and_keeps_its_order(readings):
    readings.deliver(records(0, 0, 1, 2), 1, PLENTY)
    readings[ZERO].paused = True
    assert not readings.has_something_to_deliver()
    assert offsets(readings.deliver(records(1, 0), 500, PLENTY)) == [(1, 0)]
    readings[ZERO].paused = False
    assert offsets(readings.deliver(records(0, 3), 500, PLENTY)) == [(0, 1), (0, 2), (0, 3)]


def test_what_is_held_is_forgotten_by_a_seek_and_by_a_revocation(readings):
    readings.deliver(records(0, 0, 1) + records(1, 0, 1), 1, PLENTY)
    readings.move(ZERO, 50)
    readings.remove([ONE])
    assert readings.deliver([], 500, PLENTY) == []


def test_records_on_their_way_are_not_delivered_after_a_seek_or_a_revocation(readings):
    readings.settle()
    readings.move(ZERO, 50)
    readings.remove([ONE])
    assert readings.deliver(records(0, 7) + records(1, 7), 500, PLENTY) == []


def test_records_that_were_put_back_come_first_again(readings):
    taken = readings.deliver(records(0, 0, 1, 2), 2, PLENTY)
    readings.put_back(taken)
    assert offsets(readings.deliver([], 500, PLENTY)) == [(0, 0), (0, 1), (0, 2)]


def test_an_end_that_was_reached_before_a_seek_says_nothing_about_what_comes_after(readings):
    readings.reached_end(ZERO, 9)
    readings.move(ZERO, 3)
    assert readings[ZERO].end is None
    readings.reached_end(ZERO, 9)
    assert readings[ZERO].end is None


def test_a_partition_that_is_not_assigned_is_named(readings):
    with pytest.raises(InvalidRequest, match=r"orders\[7\] is not assigned"):
        readings[TopicPartition("orders", 7)]
