import pytest

from forebay.broker.port import Watermarks
from forebay.cli.errors import WrongUse
from forebay.cli.filters import Bounds, Filter, Span, newest, parse_header, spans
from forebay.core.records import Record, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
HELD = {A: Watermarks(10, 20), B: Watermarks(0, 0)}
LOWS = {A: 10, B: 0}


def record(offset=0, *, at=0, **fields):
    return Record(b"v", topic="t", partition=0, offset=offset, timestamp_ms=at, **fields)


def test_an_empty_partition_is_left_out_unless_it_is_followed():
    assert spans(HELD, LOWS, Bounds()) == {A: Span(10, 20)}
    assert spans(HELD, LOWS, Bounds(follow=True)) == {A: Span(10, None), B: Span(0, None)}


@pytest.mark.parametrize(
    ("bounds", "span"),
    [
        (Bounds(from_offset=3), Span(10, 20)),
        (Bounds(from_offset=15), Span(15, 20)),
        (Bounds(to_offset=12), Span(10, 12)),
        (Bounds(to_offset=99), Span(10, 20)),
        (Bounds(last=3), Span(17, 20)),
        (Bounds(last=3, to_offset=15), Span(12, 15)),
        (Bounds(last=50), Span(10, 20)),
    ],
)
def test_a_range_is_from_and_without_its_end_and_stays_inside_the_log(bounds, span):
    assert spans(HELD, LOWS, bounds)[A] == span


def test_a_range_that_holds_nothing_reads_nothing():
    assert spans(HELD, LOWS, Bounds(from_offset=20)) == {}
    assert spans(HELD, LOWS, Bounds(last=0)) == {}


def test_a_key_of_other_bytes_or_none_is_not_the_key_asked_for():
    wanted = Filter(key="ä")
    assert wanted.wants(record(key="ä".encode()))
    assert not wanted.wants(record(key="ä".encode("latin-1")))
    assert not wanted.wants(record())


def test_one_of_several_headers_of_a_name_is_enough_but_every_name_must_match():
    headers = (("a", b"1"), ("a", b"2"), ("b", None))
    assert Filter(headers=(("a", "2"), ("b", None))).wants(record(headers=headers))
    assert not Filter(headers=(("a", "3"),)).wants(record(headers=headers))
    assert not Filter(headers=(("b", ""),)).wants(record(headers=headers))
    assert not Filter(headers=(("c", None),)).wants(record(headers=headers))


def test_a_time_range_is_from_and_without_its_end():
    wanted = Filter(since_ms=5, until_ms=7)
    assert [wanted.wants(record(at=at)) for at in (4, 5, 6, 7)] == [False, True, True, False]


def test_a_header_to_look_for_needs_a_name():
    assert parse_header("a=b=c") == ("a", "b=c")
    assert parse_header("a") == ("a", None)
    with pytest.raises(WrongUse, match="has no name"):
        parse_header("=b")


def test_the_newest_keep_their_order_in_the_log_when_a_sender_dates_one_back():
    log = [record(0, at=100), record(1, at=5), record(2, at=101)]
    assert [kept.offset for kept in newest(log, 2)] == [1, 2]
    assert newest(log, 0) == []
    assert len(newest(log, 9)) == 3
