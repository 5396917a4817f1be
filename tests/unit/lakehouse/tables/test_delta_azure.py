"""The same tables in an object store."""

import polars as pl
import pytest
from deltalake import DeltaTable

from azurite_fixtures import azurite, container, own_azurite  # noqa: F401  one for all of a process
from forebay.core.errors import AccessDenied, Fenced, Unavailable
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.reading import DeltaReader
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.state.sql_values import Column

HERE = SourcePartition("orders", 0, "topic-1")
MODES = ("append", "append_missing", "upsert")


@pytest.fixture
def location(azurite, container):  # noqa: F811  the fixtures
    return TableLocation(f"{container}/tables/orders", lambda: azurite.options)


def sink_at(location, mode="append") -> DeltaSink:
    key = () if mode == "append" else ("id",)
    columns = (Column("id"), Column("amount", int), Column("day"))
    return DeltaSink("orders-row", DeclaredTable(location, columns, key, mode, ("day",)))


def order(id, amount=1, day="2026-01-05"):
    return {"id": id, "amount": amount, "day": day}


def rows_in(location):
    table = DeltaTable(location.place, storage_options=dict(location.options()))
    return sorted(pl.scan_delta(table).select("id", "amount").collect().rows())


@pytest.mark.parametrize("mode", MODES)
def test_rows_and_position_are_stored_together(location, mode):
    sink = sink_at(location, mode)
    sink.commit([order("a", 1), order("b", 1, "2026-01-06")], {HERE: 2})
    sink.commit([order("a", 2)], {HERE: 3})
    expected = {
        "append": [("a", 1), ("a", 2), ("b", 1)],
        "append_missing": [("a", 1), ("b", 1)],
        "upsert": [("a", 2), ("b", 1)],
    }
    assert rows_in(location) == expected[mode]
    assert sink_at(location, mode).position([HERE]) == {HERE: 3}


def test_a_second_writer_is_fenced(location):
    slow, quick = sink_at(location), sink_at(location)
    slow.position([HERE])
    quick.position([HERE])
    quick.commit([order("a")], {HERE: 1})
    with pytest.raises(Fenced):
        slow.commit([order("a"), order("b")], {HERE: 2})
    assert rows_in(location) == [("a", 1)]


def test_it_is_described_and_checked(location):
    sink_at(location, "upsert").commit([order("a"), order("b")], {HERE: 2})
    reader = DeltaReader(location)
    told = reader.describe()
    assert (told.summary.rows, told.key, told.positions[0].next_offset) == (2, ("id",), 2)
    assert list(reader.verify((), lambda done: None)) == []


def test_a_wrong_credential_is_told_without_it(location, azurite):  # noqa: F811  the fixture
    wrong = azurite.options | {"azure_storage_account_key": "c2VjcmV0LXNlY3JldA=="}
    with pytest.raises(AccessDenied) as told:
        sink_at(TableLocation(location.uri, lambda: wrong)).position([HERE])
    assert "c2VjcmV0" not in str(told.value)


def test_a_store_that_dies_and_comes_back_loses_and_doubles_nothing(own_azurite):  # noqa: F811
    address = own_azurite.new_container("tables")
    location = TableLocation(f"{address}/orders", lambda: own_azurite.options)
    sink = sink_at(location, "append_missing")
    sink.commit([order("a")], {HERE: 1})
    own_azurite.stop()
    with pytest.raises(Unavailable):
        sink.commit([order("b")], {HERE: 2})
    with pytest.raises(Unavailable):
        sink.position([HERE])
    own_azurite.start()
    assert sink.position([HERE]) == {HERE: 1}
    sink.commit([order("b")], {HERE: 2})
    assert rows_in(location) == [("a", 1), ("b", 1)]
