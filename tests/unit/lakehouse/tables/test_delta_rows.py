"""Which rows a Delta table takes, as what, and which of a key it keeps."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from uuid import UUID

import polars as pl
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import ArrayType, PrimitiveType

from forebay.core.errors import InvalidRequest, RowsRefused, Unusable
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.handle import TableHandle
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.state.sql_values import Column

HERE = SourcePartition("orders", 0, "topic-1")
COLUMNS = (Column("id"), Column("amount", int), Column("day", date))
MONDAY, TUESDAY = date(2026, 1, 5), date(2026, 1, 6)


class Colour(Enum):
    RED = "red"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tables" / "orders"


def sink_at(path, mode="append", columns=COLUMNS, partition_by=("day",), key=("id",)) -> DeltaSink:
    key = () if mode == "append" else key
    declared = DeclaredTable(TableLocation(str(path)), tuple(columns), key, mode, partition_by)
    return DeltaSink("orders-row", declared)


def order(id, amount=1, day=MONDAY):
    return {"id": id, "amount": amount, "day": day}


def rows_in(path, *columns):
    frame = pl.scan_delta(DeltaTable(path)).collect()
    return sorted(frame.select(columns or frame.columns).rows())


def commit_all(sink, *batches):
    for number, batch in enumerate(batches, start=1):
        sink.commit(batch, {HERE: number})


# Keys.


def test_append_keeps_every_row(path):
    commit_all(sink_at(path), [order("a"), order("a")], [order("a")])
    assert rows_in(path, "id") == [("a",)] * 3


def test_append_missing_keeps_the_first_row_of_a_key(path):
    sink = sink_at(path, "append_missing")
    commit_all(sink, [order("a", 1), order("a", 2)], [order("a", 3), order("b", 4)])
    assert rows_in(path, "id", "amount") == [("a", 1), ("b", 4)]


def test_upsert_keeps_the_newest_row_of_a_key(path):
    sink = sink_at(path, "upsert")
    commit_all(sink, [order("a", 1), order("a", 2)], [order("b", 3), order("a", 4)])
    assert rows_in(path, "id", "amount") == [("a", 4), ("b", 3)]


@pytest.mark.parametrize("mode", ["append_missing", "upsert"])
def test_what_another_process_has_stored_is_known_to_the_next(path, mode):
    commit_all(sink_at(path, mode), [order("a", 1)])
    sink_at(path, mode).commit([order("a", 1), order("b", 2)], {HERE: 3})
    assert rows_in(path, "id", "amount") == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("mode", ["append_missing", "upsert"])
def test_a_repeated_event_at_a_new_offset_is_one_row(path, mode):
    sink = sink_at(path, mode)
    sink.commit([order("a")], {HERE: 1})
    sink.commit([order("a")], {HERE: 2})
    assert rows_in(path, "id") == [("a",)]
    assert sink.position([HERE]) == {HERE: 2}


def test_a_key_is_one_within_its_partition_which_comes_from_the_record(path):
    sink = sink_at(path, "append_missing")
    commit_all(sink, [order("a", day=MONDAY)], [order("a", day=TUESDAY), order("a", day=MONDAY)])
    assert rows_in(path, "id", "day") == [("a", MONDAY), ("a", TUESDAY)]
    assert {folder.name for folder in path.glob("day=*")} == {"day=2026-01-05", "day=2026-01-06"}


def test_a_table_without_partitions_has_one_row_of_a_key(path):
    sink = sink_at(path, "upsert", partition_by=())
    commit_all(sink, [order("a", 1, MONDAY)], [order("a", 2, TUESDAY)])
    assert rows_in(path) == [("a", 2, TUESDAY)]


def test_a_key_of_several_columns_differs_where_one_of_them_does(path):
    sink = sink_at(path, "append_missing", key=("id", "amount"))
    commit_all(sink, [order("a", 1), order("a", 2)], [order("a", 2), order("a", 3)])
    assert rows_in(path, "id", "amount") == [("a", 1), ("a", 2), ("a", 3)]


@pytest.mark.parametrize("mode", ["append_missing", "upsert"])
def test_a_null_in_a_further_column_of_the_key_equals_a_null(path, mode):
    """An event without attachments that is sent again is one row."""
    sink = sink_at(path, mode, key=("id", "amount"))
    again = [order("a", None), order("a", 1), order("b", None)]
    commit_all(sink, [order("a", None)], again, again)
    sink_at(path, mode, key=("id", "amount")).commit(again, {HERE: 9})
    found = pl.scan_delta(DeltaTable(path)).collect()
    assert sorted(found["id"]) == ["a", "a", "b"]
    assert found["amount"].to_list().count(None) == 2


def test_an_upsert_over_a_null_in_the_key_replaces_that_row(path):
    columns = (*COLUMNS, Column("note"))
    sink = sink_at(path, "upsert", columns, key=("id", "amount"))
    commit_all(sink, *([order("a", None) | {"note": note}] for note in ("old", "new")))
    assert rows_in(path, "id", "amount", "note") == [("a", None, "new")]


def test_an_upsert_told_again_changes_nothing_and_still_moves_the_position(path):
    sink = sink_at(path, "upsert")
    sink.commit([order("a", 1), order("b", None)], {HERE: 1})
    files = set(path.rglob("*.parquet"))
    sink.commit([order("a", 1), order("b", None)], {HERE: 2})
    assert set(path.rglob("*.parquet")) == files
    assert sink.position([HERE]) == {HERE: 2}


def test_an_upsert_over_more_days_than_one_merge_takes_replaces_each(path):
    days = [MONDAY + timedelta(days=number) for number in range(8)]
    sink = sink_at(path, "upsert")
    commit_all(sink, [order("a", 1, day) for day in days], [order("a", 2, day) for day in days])
    assert rows_in(path) == [("a", 2, day) for day in days]
    assert sink.position([HERE]) == {HERE: 2}


class NothingToMerge(TableHandle):
    appended = 0

    def replace(self, frame, matching, positions):
        return False

    def append(self, frame, positions):
        NothingToMerge.appended += 1
        super().append(frame, positions)


class SinkOfNothingToMerge(DeltaSink):
    def _open_handle(self):
        return NothingToMerge(self._table.location)


def test_of_several_merges_that_find_nothing_to_do_only_the_last_stores_a_position(path):
    days = [MONDAY + timedelta(days=number) for number in range(8)]
    commit_all(sink_at(path, "upsert"), [order("a", 1, day) for day in days])
    table = DeclaredTable(TableLocation(str(path)), COLUMNS, ("id",), "upsert", ("day",))
    sink = SinkOfNothingToMerge("orders-row", table)
    sink.position([HERE])
    NothingToMerge.appended = 0
    sink.commit([order("a", 2, day) for day in days], {HERE: 2})
    assert NothingToMerge.appended == 1
    assert sink.position([HERE]) == {HERE: 2}


def test_the_first_position_of_a_sink_survives_an_upsert_of_several_merges(path):
    days = [MONDAY + timedelta(days=number) for number in range(8)]
    commit_all(sink_at(path), [order("a", 1, day) for day in days])
    other = SourcePartition("orders", 1, "topic-1")
    sink = sink_at(path, "upsert")
    assert sink.position([other]) == {other: None}
    sink.commit([order("a", 2, day) for day in days], {other: 9})
    assert sink.position([other]) == {other: 9}
    assert rows_in(path, "amount") == [(2,)] * 8


def test_a_table_that_is_all_key_keeps_one_row_of_each(path):
    sink = sink_at(path, "upsert", key=("id", "amount", "day"))
    commit_all(sink, [order("a")], [order("a")])
    assert rows_in(path, "id") == [("a",)]


def test_names_are_names_whatever_they_look_like(path):
    odd = 'x") OR 1 = 1 --'
    columns = (Column(odd), Column("select", int), Column("a.b"))
    sink = sink_at(path, "upsert", columns, partition_by=("a.b",), key=(odd,))
    for number in range(2):
        sink.commit([{odd: "a", "select": number, "a.b": "it's"}], {HERE: number + 1})
    assert rows_in(path) == [("a", 1, "it's")]


@pytest.mark.parametrize("count", [24, 25, 26, 60])
def test_keys_are_known_across_handles(path, count):
    sink = sink_at(path, "append_missing")
    commit_all(sink, *([order("a"), order(str(number % 7))] for number in range(count)))
    assert rows_in(path, "id") == sorted([("a",), *((str(number),) for number in range(7))])


# Values.

UTC_NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (str, "ümläut", "ümläut"),
        (int, 7, 7),
        (int, True, 1),
        (bool, False, False),
        (float, 1, 1.0),
        (float, 0.5, 0.5),
        (bytes, b"\x00\xff", b"\x00\xff"),
        (bytes, bytearray(b"a"), b"a"),
        (datetime, UTC_NOON, UTC_NOON),
        (datetime, datetime(2026, 1, 5, 12), UTC_NOON),  # noqa: DTZ001  a naive one is the point
        (datetime, datetime(2026, 1, 5, 14, tzinfo=timezone(timedelta(hours=2))), UTC_NOON),
        (datetime, "2026-01-05T14:00:00+02:00", UTC_NOON),
        (datetime, date(2026, 1, 5), datetime(2026, 1, 5, tzinfo=UTC)),
        (date, MONDAY, MONDAY),
        (date, "2026-01-05", MONDAY),
        (date, datetime(2026, 1, 6, 1, tzinfo=timezone(timedelta(hours=2))), MONDAY),
        (dict, {"a": [1, None]}, '{"a":[1,null]}'),
        (list, ["a", 1], '["a",1]'),
        (Decimal, Decimal("1.10"), "1.10"),
        (UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour, Colour.RED, "red"),
        (object, 5, "5"),
        (int, None, None),
    ],
)
def test_a_value_is_stored_as_its_column_was_declared(path, kind, value, stored):
    columns = (Column("id"), Column("it", kind))
    sink = sink_at(path, columns=columns, partition_by=())
    sink.commit([{"id": "a", "it": value}, {"id": "b"}], {HERE: 1})
    assert rows_in(path) == [("a", stored), ("b", None)]


def test_moments_with_and_without_a_zone_meet_in_one_batch(path):
    sink = sink_at(path, columns=(Column("at", datetime),), partition_by=())
    naive = UTC_NOON.replace(tzinfo=None)
    sink.commit([{"at": naive}, {"at": UTC_NOON}, {"at": naive}], {HERE: 3})
    assert rows_in(path) == [(UTC_NOON,)] * 3


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "7"),
        (int, 1.5),
        (int, 2**63),
        (float, "0.5"),
        (float, 10**400),
        (bytes, "text"),
        (bool, 1),
        (str, 7),
        (str, "\ud800"),
        (dict, {"a": object()}),
        (date, 7),
        (date, "yesterday"),
        (datetime, 7),
        (datetime, "noon"),
        (int, object()),
    ],
)
def test_a_value_its_column_was_not_declared_for_is_refused_and_stores_nothing(path, kind, value):
    sink = sink_at(path, columns=(Column("it", kind),), partition_by=())
    with pytest.raises(RowsRefused, match="Nothing was stored"):
        sink.commit([{"it": None}, {"it": value}], {HERE: 2})
    assert rows_in(path) == []
    assert sink.position([HERE]) == {HERE: None}


@pytest.mark.parametrize("missing", ["id", "day"])
def test_a_row_without_its_key_or_its_partition_is_refused(path, missing):
    sink = sink_at(path, "upsert")
    with pytest.raises(RowsRefused, match=f"has no {missing}"):
        sink.commit([order("a"), order("b") | {missing: None}], {HERE: 2})
    assert rows_in(path) == []


@pytest.mark.parametrize("mode", ["append", "append_missing", "upsert"])
def test_a_partition_named_as_delta_names_none_is_refused_for_its_keys_would_double(path, mode):
    columns = (Column("id"), Column("region"))
    sink = sink_at(path, mode, columns, ("region",), () if mode == "append" else ("id",))
    nowhere = {"id": "a", "region": "__HIVE_DEFAULT_PARTITION__"}
    with pytest.raises(RowsRefused, match="as region, by which its table is partitioned"):
        sink.commit([{"id": "a", "region": "north"}, nowhere], {HERE: 2})
    sink.commit([{"id": "__HIVE_DEFAULT_PARTITION__", "region": "north"}], {HERE: 2})
    assert rows_in(path, "id") == [("__HIVE_DEFAULT_PARTITION__",)]


@pytest.mark.parametrize(
    ("columns", "key", "partition_by"),
    [
        ((), (), ()),
        ((Column("a"), Column("a")), (), ()),
        ((Column("a"),), ("b",), ()),
        ((Column("a"),), (), ("b",)),
    ],
)
def test_a_declaration_that_cannot_work_is_refused_at_once(path, columns, key, partition_by):
    with pytest.raises(InvalidRequest, match="needs columns, each once"):
        sink_at(path, "upsert" if key else "append", columns, partition_by, key)


# Tables that are there already.


def make_table(path, schema, partition_by=()):
    fields = [Field(name, kind, nullable) for name, kind, nullable in schema]
    DeltaTable.create(path, Schema(fields), partition_by=list(partition_by))


def theirs(*columns):
    return [(name, PrimitiveType(kind), True) for name, kind in columns]


def test_of_a_table_that_is_there_only_its_columns_are_written(path):
    make_table(path, theirs(("amount", "long"), ("id", "string"), ("note", "string")))
    sink = sink_at(path, "upsert", partition_by=())
    commit_all(sink, [order("a", 1)], [order("a", 2)])
    assert rows_in(path, "id", "amount", "note") == [("a", 2, None)]
    assert sink.left_out == ("day",)


def test_a_table_that_is_there_stays_partitioned_as_it_is(path):
    make_table(path, theirs(("id", "string"), ("amount", "long"), ("day", "date")), ["id"])
    sink = sink_at(path, "upsert", partition_by=("day",))
    commit_all(sink, [order("a", 1)], [order("a", 2)])
    assert rows_in(path) == [("a", 2, MONDAY)]
    assert DeltaTable(path).metadata().partition_columns == ["id"]


@pytest.mark.parametrize(
    ("type_of_column", "kind", "value", "stored"),
    [
        ("string", datetime, UTC_NOON, "2026-01-05T12:00:00+00:00"),
        ("string", int, 7, "7"),
        ("timestamp", str, "2026-01-05T12:00:00Z", UTC_NOON),
        ("timestamp_ntz", datetime, UTC_NOON, UTC_NOON.replace(tzinfo=None)),
        ("date", datetime, UTC_NOON, MONDAY),
        ("integer", int, 7, 7),
        ("short", int, 7, 7),
        ("float", float, 0.5, 0.5),
        ("double", int, 7, 7.0),
        ("decimal(10,2)", str, "1.10", Decimal("1.10")),
        ("decimal(10,2)", float, 1.5, Decimal("1.50")),
    ],
)
def test_a_value_is_cast_to_what_the_live_table_holds(path, type_of_column, kind, value, stored):
    make_table(path, theirs(("it", type_of_column)))
    sink = sink_at(path, columns=(Column("it", kind),), partition_by=())
    sink.commit([{"it": value}], {HERE: 1})
    assert rows_in(path) == [(stored,)]


@pytest.mark.parametrize(
    ("type_of_column", "kind", "value"),
    [("integer", int, 2**40), ("timestamp", str, "noon"), ("long", str, "7"), ("date", int, 7)],
)
def test_what_does_not_fit_the_live_table_is_refused(path, type_of_column, kind, value):
    make_table(path, theirs(("it", type_of_column)))
    sink = sink_at(path, columns=(Column("it", kind),), partition_by=())
    with pytest.raises(RowsRefused, match="does not fit"):
        sink.commit([{"it": value}], {HERE: 1})
    assert rows_in(path) == []


NESTED = [("tags", ArrayType(PrimitiveType("string"), contains_null=True), True)]


def test_a_list_that_rows_say_nothing_of_stays_empty(path):
    make_table(path, [*theirs(("id", "string")), *NESTED])
    sink = sink_at(path, "upsert", columns=(Column("id"),), partition_by=())
    commit_all(sink, [{"id": "a"}], [{"id": "a"}, {"id": "b"}])
    assert rows_in(path, "id", "tags") == [("a", None), ("b", None)]


WRONG_TABLES = {
    "no key": (theirs(("name", "string")), (), "has no column id; it has name"),
    "none of the columns": (theirs(("name", "string")), None, "has no column id; it has name"),
    "a partition that rows do not tell": (
        theirs(("id", "string"), ("region", "string")),
        ("region",),
        "is partitioned by region, which its rows were declared without",
    ),
    "a column that must have a value": (
        [*theirs(("id", "string")), ("region", PrimitiveType("string"), False)],
        (),
        "wants a value for region in every row",
    ),
    "a list under a declared name": (
        [*theirs(("id", "string")), ("amount", NESTED[0][1], True)],
        (),
        "Column amount of table .* holds lists",
    ),
}


@pytest.mark.parametrize(
    ("schema", "partition_by", "sentence"), WRONG_TABLES.values(), ids=WRONG_TABLES.keys()
)
def test_a_table_that_cannot_take_the_rows_is_told_at_the_start(
    path, schema, partition_by, sentence
):
    make_table(path, schema, partition_by or ())
    sink = sink_at(path, "append" if partition_by is None else "upsert", partition_by=())
    for _ in range(2):
        with pytest.raises(Unusable, match=sentence):
            sink.position([HERE])
    assert DeltaTable(path).version() == 0


def test_a_constraint_of_somebody_s_table_refuses_the_batch_whole(path):
    make_table(path, theirs(("id", "string"), ("amount", "long"), ("day", "date")))
    DeltaTable(path).alter.add_constraint({"small": "amount < 10"})
    sink = sink_at(path, "upsert", partition_by=())
    with pytest.raises(RowsRefused, match="refuses rows"):
        sink.commit([order("a", 1), order("b", 10)], {HERE: 2})
    sink.commit([order("a", 1)], {HERE: 2})
    assert rows_in(path, "id") == [("a",)]


def test_a_column_added_while_the_sink_runs_is_left_empty_not_a_reason_to_stop(path):
    sink = sink_at(path, "upsert")
    sink.commit([order("a")], {HERE: 1})
    note = pl.DataFrame({"id": ["z"], "amount": [1], "day": [MONDAY], "note": ["theirs"]})
    write_deltalake(path, note, mode="append", schema_mode="merge")
    sink.commit([order("b")], {HERE: 2})
    assert rows_in(path, "id", "note") == [("a", None), ("b", None), ("z", "theirs")]
