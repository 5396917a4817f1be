from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.envelope import (
    HISTORY_MAX,
    PREFIX,
    first_envelope,
    open_envelope,
    read_envelope,
    seal,
    user_headers,
)
from forebay.core.failures import Failure
from forebay.core.records import Record, size_bytes

GROUP = "shop-charge"
NAMES = st.text(max_size=12).filter(lambda name: not name.startswith(PREFIX))
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=20)), max_size=6)
PAYLOADS = st.none() | st.binary(max_size=50)
TEXT = st.text(max_size=3_000)
OURS = ("id", "group", "origin", "attempt", "times", "due", "history", "replay", "note", "reason")


@st.composite
def records(draw):
    place = draw(st.integers(0, 99)), draw(st.integers(0, 2**53)), draw(st.integers(0, 2**50))
    return Record(draw(PAYLOADS), draw(PAYLOADS), draw(HEADERS), "orders", *place)


def received(record: Record, headers: list) -> Record:
    return Record(record.value, record.key, headers, "again", 0, 0, record.timestamp_ms + 9)


@given(record=records(), reason=TEXT, stack=TEXT, hops=st.integers(0, 12))
def test_a_record_travels_byte_for_byte_and_its_envelope_with_it(record, reason, stack, hops):
    envelope = first_envelope(GROUP, record)
    for hop in range(hops):
        failure = Failure("transient", reason, "OSError", stack)
        envelope = envelope.failed(failure, 1_000 + hop, attempt=hop + 2, due_ms=2_000 + hop)
    came = received(record, seal(record, envelope))
    assert (came.value, came.key, user_headers(came.headers)) == (
        record.value,
        record.key,
        list(record.headers),
    )
    assert read_envelope(came) == envelope


@given(record=records())
def test_headers_of_ours_from_outside_are_taken_off(record):
    forged = [(PREFIX + "attempt", b"7"), *record.headers, (PREFIX + "anything", b"x")]
    sealed = seal(record._replace(headers=forged), first_envelope(GROUP, record))
    assert user_headers(sealed) == list(record.headers)
    assert [value for name, value in sealed if name == PREFIX + "attempt"] == [b"1"]


PLAIN = (
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(-(2**63), 2**64 - 1)
)
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=5), max_leaves=8)
OF_FOUR = st.tuples(PLAIN, PLAIN, PLAIN, PLAIN)
NEARLY = st.tuples(
    st.just("orders"), st.just(0), st.just(5), st.floats() | st.integers(0, 2**64 - 1)
)
NUMBERS = st.integers().map(lambda number: b"%d" % number)
GARBAGE = st.none() | st.binary(max_size=30) | NUMBERS | (JSON | OF_FOUR | NEARLY).map(orjson.dumps)


@given(record=records(), forged=st.dictionaries(st.sampled_from(OURS), GARBAGE, max_size=4))
def test_forged_headers_never_raise_and_are_bounded(record, forged):
    """Read, failed once more and sealed again, as the engine does with what it opens."""
    sealed = dict(seal(record, first_envelope(GROUP, record)))
    garbage = {PREFIX + name: value for name, value in forged.items()}
    came = received(record, list((sealed | garbage).items()))
    envelope = open_envelope(came, GROUP, attempts_max=5, delay_ms_max=60_000)
    if envelope is None:
        return
    assert 1 <= envelope.attempt <= 5
    assert 0 <= envelope.due_ms <= came.timestamp_ms + 120_000
    assert len(envelope.history) <= HISTORY_MAX
    again = seal(came, envelope.failed(Failure("unknown", "again"), 9_000, attempt=2))
    assert read_envelope(received(came, again)) is not None


def test_another_groups_envelope_is_not_ours():
    record = Record(b"1", None, (), "orders", 0, 5, 1_000)
    came = received(record, seal(record, first_envelope("others", record)))
    assert open_envelope(came, GROUP, 5, 1_000) is None


def test_an_id_is_that_of_the_place_and_time_a_group_met_it():
    record = Record(b"1", None, (), "orders", 0, 5, 1_000)
    ids = {
        first_envelope(group, record._replace(offset=offset, timestamp_ms=at_ms)).id
        for group in ("a", "b")
        for offset in (5, 6)
        for at_ms in (1_000, 1_001)
    }
    assert len(ids) == 8


def test_headers_stay_within_16_kib_however_much_went_wrong():
    record = Record(b"1", None, (), "orders", 0, 5, 1_000)
    envelope = first_envelope(GROUP, record)
    for hop in range(50):
        failure = Failure("transient" * 9, "ü" * 5_000, "E" * 100, "s" * 50_000)
        envelope = envelope.failed(failure, hop, attempt=hop)
    full = size_bytes(Record(None, None, seal(record, envelope)))
    assert full <= 16 * 1024
    assert size_bytes(Record(None, None, seal(record, envelope.without_history()))) < full


@pytest.mark.parametrize("reason", ["caf\udce9", "\ud800"])
def test_words_that_are_no_unicode_can_be_sealed(reason):
    record = Record(b"1", None, (), "orders", 0, 5, 1_000)
    envelope = first_envelope(GROUP, record).failed(Failure(reason, reason), 1, attempt=2)
    envelope = replace(envelope, note=reason)
    assert read_envelope(received(record, seal(record, envelope))) is not None
