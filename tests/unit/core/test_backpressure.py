import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.backpressure import Bounds
from forebay.core.errors import InvalidRequest

COUNTS = st.integers(0, 20_000)


@given(span=COUNTS, unresolved=COUNTS, still=st.floats(0, 100), partitions=st.integers(0, 500))
def test_no_partition_is_to_be_paused_and_resumed_at_once(span, unresolved, still, partitions):
    bounds = Bounds()
    share = bounds.share(partitions)
    pause = bounds.must_pause(span=span, unresolved=unresolved, share=share, still_seconds=still)
    resume = bounds.may_resume(span=span, unresolved=unresolved, share=share)
    assert not (pause and resume)


@given(partitions=st.integers(0, 500))
def test_stalled_partitions_leave_room_for_one_that_is_not(partitions):
    bounds = Bounds(records=1_000)
    assert bounds.share(partitions) * partitions < 1_000


def test_a_partition_that_makes_progress_is_not_paused_for_holding_much():
    told = {"span": 900, "unresolved": 900, "share": 100}
    assert not Bounds().must_pause(**told, still_seconds=0.9)
    assert Bounds().must_pause(**told, still_seconds=1.0)


def test_a_long_span_pauses_however_little_is_open():
    assert Bounds(span=50).must_pause(span=50, unresolved=1, share=100, still_seconds=0)


def test_room_ends_with_records_or_bytes_and_is_never_less_than_none():
    bounds = Bounds(records=10, bytes=100)
    assert [bounds.room(4, 99), bounds.room(10, 0), bounds.room(12, 0)] == [6, 0, 0]
    assert bounds.room(0, 100) == 0


@pytest.mark.parametrize("wrong", [{"records": 0}, {"bytes": 0}, {"span": -1}])
def test_a_bound_that_lets_nothing_through_is_refused(wrong):
    with pytest.raises(InvalidRequest, match="at least 1"):
        Bounds(**wrong)
