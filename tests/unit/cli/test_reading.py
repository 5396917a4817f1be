import threading
from contextlib import closing

import pytest

from forebay.cli.filters import Bounds, Filter
from forebay.cli.positions import look_at, offsets_at, parse_place
from forebay.cli.reading import records
from forebay.core.records import Record
from forebay.core.topics import TopicSpec
from forebay.testing.memory import MemoryBroker


@pytest.fixture
def broker():
    broker = MemoryBroker()
    broker.admin().create_topic(TopicSpec("t", 2))
    send(broker, *range(10))
    yield broker
    broker.close()


def send(broker, *numbers):
    with closing(broker.producer()) as producer:
        for number in numbers:
            record = Record(
                str(number).encode(),
                key=b"odd" if number % 2 else b"even",
                topic="t",
                partition=number % 2,
                timestamp_ms=1_000 + number,
            )
            producer.send(record)
        producer.flush(5)


def read(broker, wanted=None, **bounds):
    held = look_at(broker.admin(), "t")[1]
    found = records(broker, held, wanted or Filter(), Bounds(**bounds))
    return sorted(int(record.value) for record in found)


def test_all_is_read_and_the_reading_ends(broker):
    assert read(broker) == list(range(10))


def test_filters_and_ranges_meet(broker):
    assert read(broker, Filter(key="odd")) == [1, 3, 5, 7, 9]
    assert read(broker, Filter(since_ms=1_004, until_ms=1_008)) == [4, 5, 6, 7]
    assert read(broker, from_offset=1, to_offset=3) == [2, 3, 4, 5]


def test_the_last_are_those_of_all_partitions_and_those_that_match(broker):
    assert read(broker, last=3) == [7, 8, 9]
    assert read(broker, Filter(key="odd"), last=2) == [7, 9]
    assert read(broker, last=0) == []


def test_reading_joins_no_group_and_moves_nobody(broker):
    read(broker)
    assert broker.admin().list_groups() == []


def test_following_goes_on_with_what_arrives_after_the_last(broker):
    held = look_at(broker.admin(), "t")[1]
    following = records(broker, held, Filter(), Bounds(last=1, follow=True))
    assert next(following).value == b"9"
    sender = threading.Thread(target=send, args=(broker, 10))
    sender.start()
    assert next(following).value == b"10"
    sender.join()
    following.close()


def test_an_empty_topic_ends_at_once(broker):
    broker.admin().create_topic(TopicSpec("empty", 1))
    held = look_at(broker.admin(), "empty")[1]
    assert list(records(broker, held, Filter(), Bounds())) == []


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("earliest", [0, 0]),
        ("latest", [5, 5]),
        ("3", [3, 3]),
        ("1970-01-01T00:00:01.005Z", [3, 2]),
    ],
)
def test_a_place_may_be_an_end_an_offset_or_a_time(broker, text, offsets):
    held = look_at(broker.admin(), "t")[1]
    found = offsets_at(broker, held, parse_place(text))
    assert [found[place] for place in sorted(found)] == offsets
