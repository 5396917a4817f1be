"""What every sink promises, whatever it stores into."""

import pytest

from contracts.sinks.stores import ALL, IN_AZURITE, store, store_at
from forebay.core.errors import Fenced, InvalidRequest, RowsRefused
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.location import TableLocation

FIRST = SourcePartition("orders", 0, "topic-1")
SECOND = SourcePartition("orders", 1, "topic-1")
RECREATED = SourcePartition("orders", 0, "topic-2")

A = {"id": "a", "amount": 1}
B = {"id": "b", "amount": 2}
C = {"id": "c", "amount": 3}


@pytest.fixture(params=ALL)
def kept(request, tmp_path):
    if request.param != IN_AZURITE:
        return store(request.param, tmp_path)
    container = request.getfixturevalue("container")
    options = request.getfixturevalue("azurite").options
    return store_at(TableLocation(f"{container}/rows", lambda: options), "upsert")


@pytest.fixture
def sink(kept):
    with kept.open() as sink:
        yield sink


def test_a_new_sink_stands_nowhere(sink):
    assert sink.position([FIRST, SECOND]) == {FIRST: None, SECOND: None}


def test_rows_and_positions_are_there_together_after_opening_again(kept):
    with kept.open() as sink:
        sink.position([FIRST, SECOND])
        sink.commit([A, B], {FIRST: 7, SECOND: 3})
    with kept.open() as sink:
        assert sink.position([FIRST, SECOND]) == {FIRST: 7, SECOND: 3}
    assert kept.rows() == [A, B]


def test_a_batch_of_skips_alone_moves_the_position(kept, sink):
    sink.commit([], {FIRST: 7})
    assert sink.position([FIRST]) == {FIRST: 7}
    assert kept.rows() == []


def test_a_commit_told_twice_does_not_double_its_rows(kept, sink):
    sink.position([FIRST])
    sink.commit([A], {FIRST: 1})
    sink.commit([A], {FIRST: 1})
    assert kept.rows() == [A]


def test_a_commit_told_again_by_the_next_process_does_not_double_its_rows(kept):
    with kept.open() as sink:
        sink.commit([A], {FIRST: 1})
    with kept.open() as sink:
        sink.commit([A], {FIRST: 1})
    assert kept.rows() == [A]


def test_batches_follow_one_another(kept, sink):
    sink.position([FIRST, SECOND])
    sink.commit([A], {FIRST: 1})
    sink.commit([B], {SECOND: 5})
    sink.commit([C], {FIRST: 2, SECOND: 6})
    assert kept.rows() == [A, B, C]
    assert sink.position([FIRST, SECOND]) == {FIRST: 2, SECOND: 6}


def test_each_incarnation_of_a_topic_has_a_position_of_its_own(kept, sink):
    sink.commit([A], {FIRST: 100})
    assert sink.position([RECREATED]) == {RECREATED: None}
    sink.commit([B], {RECREATED: 1})
    assert sink.position([FIRST, RECREATED]) == {FIRST: 100, RECREATED: 1}
    assert kept.rows() == [A, B]


def test_a_batch_that_begins_before_what_another_writer_stored_doubles_none_of_it(kept):
    with kept.open() as sink:
        sink.position([FIRST])
        sink.commit([A], {FIRST: 1})
    with kept.open() as late:
        late._expected[FIRST] = None  # it asked before the other one stored
        with pytest.raises(Fenced, match="by another writer"):
            late.commit([A, B], {FIRST: 2})
        assert late.position([FIRST]) == {FIRST: 1}
        late.commit([B], {FIRST: 2})
    assert kept.rows() == [A, B]


def test_a_batch_that_is_old_in_one_partition_and_new_in_another_stores_none_of_it(kept, sink):
    sink.commit([A], {FIRST: 5, SECOND: 5})
    with pytest.raises(Fenced, match="goes on from there"):
        sink.commit([A, B], {FIRST: 4, SECOND: 6})
    assert kept.rows() == [A]
    assert sink.position([SECOND]) == {SECOND: 5}


def test_rows_without_a_position_are_refused_for_they_could_double(kept, sink):
    sink.position([FIRST])
    with pytest.raises(InvalidRequest, match="without the position"):
        sink.commit([A], {})
    assert kept.rows() == []


def test_a_refused_row_leaves_nothing_of_its_batch_behind(kept, sink):
    sink.position([FIRST])
    with pytest.raises(RowsRefused):
        sink.commit([A, {"id": "b", "amount": object()}], {FIRST: 2})
    assert kept.rows() == []
    assert sink.position([FIRST]) == {FIRST: None}
    sink.commit([A], {FIRST: 2})
    assert kept.rows() == [A]
