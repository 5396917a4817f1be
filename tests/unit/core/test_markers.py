import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.markers import RANKS, STATES, Marker, mark, read_marker
from forebay.core.records import Record

HEADER = "forebay-marker"
TEXT = st.text(max_size=30)
MARKERS = st.builds(
    Marker, TEXT, TEXT, st.sampled_from([*RANKS, "note"]), st.integers(0, 2**50), TEXT,
    st.integers(0, 2**50), TEXT, TEXT,
)  # fmt: skip


@given(marker=MARKERS, key=st.none() | st.binary(max_size=10))
def test_a_marker_reads_back_as_it_was_written_and_lies_beside_its_letter(marker, key):
    record = mark(marker, "dlq", key)
    assert (record.key, record.topic, record.value) == (key, "dlq", None)
    assert read_marker(record) == marker


@given(written=st.none() | st.binary(max_size=60))
def test_garbage_is_no_marker_and_raises_nothing(written):
    assert read_marker(Record(None, None, [(HEADER, written)])) is None


@pytest.mark.parametrize("kind", ["", "replayed", None, 7, ["note"], {}])
def test_a_kind_that_nobody_knows_is_no_marker(kind):
    told = orjson.loads(dict(mark(Marker("i", "g", "note"), "dlq", None).headers)[HEADER])
    forged = [(HEADER, orjson.dumps(told | {"kind": kind}))]
    assert read_marker(Record(None, None, forged)) is None


def test_a_letter_is_no_marker():
    assert read_marker(Record(b"1", None, [("colour", b"red")])) is None


def test_every_rank_leads_to_a_state():
    assert RANKS.keys() == STATES.keys()
    assert max(RANKS, key=lambda kind: RANKS[kind]) == "discarded"


def test_a_reason_that_is_no_unicode_can_be_written():
    marker = read_marker(mark(Marker("i", "g", "note", reason="caf\udce9"), "dlq", None))
    assert marker is not None
    assert "caf" in marker.reason
