import pickle

from hypothesis import given
from hypothesis import strategies as st

from forebay.core.records import (
    Record,
    StoredRecord,
    TopicPartition,
    pack_headers,
    size_bytes,
    unpack_headers,
)

header_names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
header_lists = st.lists(st.tuples(header_names, st.none() | st.binary(max_size=60)), max_size=8)


@given(header_lists)
def test_headers_come_back_from_packing_with_order_repeats_none_and_empty(headers):
    packed = pack_headers(headers)
    assert (packed is None) == (headers == [])
    assert unpack_headers(packed or b"") == headers


def stored(headers):
    return StoredRecord(b"v", b"k", pack_headers(headers), "t", 1, 2, 3)


@given(header_lists)
def test_a_stored_record_shows_the_headers_that_were_packed(headers):
    assert list(stored(headers).headers) == headers
    assert size_bytes(stored(headers)) == size_bytes(Record(b"v", b"k", headers))
    assert repr(stored(headers)) == repr(Record(b"v", b"k", headers or (), "t", 1, 2, 3))


def test_a_stored_record_that_is_sent_on_keeps_its_headers_or_takes_new_ones():
    record = stored([("a", b"1")])
    assert record._replace(topic="other").headers == [("a", b"1")]
    assert record._replace(headers=[("b", None)]).headers == [("b", None)]


def test_a_header_without_a_value_is_not_one_with_an_empty_value():
    assert pack_headers([("a", None)]) != pack_headers([("a", b"")])


def test_a_header_name_of_more_than_65535_bytes_is_packed_as_kafka_would_take_it():
    headers = [("n" * 70_000, b"v")]
    assert unpack_headers(pack_headers(headers)) == headers


@given(st.none() | st.binary(), st.none() | st.binary(), header_lists)
def test_a_size_counts_key_value_and_every_header_in_bytes(value, key, headers):
    expected = sum(map(len, filter(None, [value, key])))
    expected += sum(len(name.encode()) + len(content or b"") for name, content in headers)
    assert size_bytes(Record(value, key=key, headers=headers)) == expected


def test_a_partition_reads_as_topic_and_number_and_sorts_by_number():
    assert str(TopicPartition("orders", 3)) == "orders[3]"
    assert TopicPartition("a", 9) < TopicPartition("a", 10) < TopicPartition("b", 0)
    assert Record(b"", topic="orders", partition=3).at == TopicPartition("orders", 3)


def test_a_record_crosses_processes_unchanged():
    record = pickle.loads(pickle.dumps(stored([("a", None)])))  # noqa: S301
    assert record.headers == [("a", None)]
    assert (record.value, record.at, record.offset) == (b"v", TopicPartition("t", 1), 2)
