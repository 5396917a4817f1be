from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

import pytest

from forebay.core.errors import InvalidName, InvalidRequest, RowsRefused, Unusable
from forebay.core.sinks import SourcePartition
from forebay.state.sql_sink import SqlSink, SqlTable
from forebay.state.sql_values import Column
from forebay.state.sqlite.database import SqliteDatabase

HERE = SourcePartition("orders", 0, "topic-1")
COLUMNS = (Column("id", str), Column("amount", int))


class Colour(Enum):
    RED = "red"


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "rows.db")
    yield database
    database.close()


def sink_over(database, columns=COLUMNS, key=(), name="orders") -> SqlSink:
    return SqlSink(database, "orders-row", SqlTable(name, tuple(columns), tuple(key)))


def execute(database, sql: str) -> None:
    with database.transaction() as transaction:
        transaction.execute(sql)


def test_with_a_key_the_newest_row_of_a_key_stays(database):
    sink = sink_over(database, key=["id"])
    sink.commit([{"id": "a", "amount": 1}, {"id": "a", "amount": 2}], {HERE: 2})
    sink.commit([{"id": "b", "amount": 3}, {"id": "a", "amount": 4}], {HERE: 4})
    assert database.read("SELECT id, amount FROM orders ORDER BY id") == [("a", 4), ("b", 3)]


def test_without_a_key_every_row_stays(database):
    sink = sink_over(database)
    sink.commit([{"id": "a", "amount": 1}] * 2, {HERE: 2})
    assert database.read("SELECT count(*) FROM orders") == [(2,)]


def test_a_table_that_is_all_key_keeps_one_row_of_each(database):
    sink = sink_over(database, key=["id", "amount"])
    sink.commit([{"id": "a", "amount": 1}] * 2, {HERE: 2})
    assert database.read("SELECT id, amount FROM orders") == [("a", 1)]


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (str, "ümläut", "ümläut"),
        (int, 7, 7),
        (int, True, 1),
        (bool, False, 0),
        (float, 1, 1.0),
        (float, 0.5, 0.5),
        (bytes, b"\x00\xff", b"\x00\xff"),
        (bytes, bytearray(b"a"), b"a"),
        (datetime, datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC), "2024-05-06T07:08:09+00:00"),
        (date, date(2024, 5, 6), "2024-05-06"),
        (dict, {"a": [1, None]}, '{"a":[1,null]}'),
        (list, ["a", 1], '["a",1]'),
        (Decimal, Decimal("1.10"), "1.10"),
        (UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour, Colour.RED, "red"),
        (object, 5, "5"),
        (int, None, None),
    ],
)
def test_a_value_is_stored_as_its_column_was_declared(database, kind, value, stored):
    sink = sink_over(database, [Column("it", kind)])
    sink.commit([{"it": value}], {HERE: 1})
    ((back,),) = database.read("SELECT it FROM orders")
    assert (type(back), back) == (type(stored), stored)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, "7"),
        (int, 1.5),
        (int, 2**63),
        (float, "0.5"),
        (float, 10**400),
        (bytes, "text"),
        (str, 7),
        (str, "\ud800"),
        (dict, {"a": object()}),
    ],
)
def test_a_value_its_column_was_not_declared_for_is_refused(database, kind, value):
    sink = sink_over(database, [Column("it", kind)])
    with pytest.raises(RowsRefused, match="Nothing was stored"):
        sink.commit([{"it": value}], {HERE: 1})
    assert database.read("SELECT * FROM orders") == []


def test_a_row_without_its_key_is_refused_for_it_could_never_be_replaced(database):
    sink = sink_over(database, key=["id"])
    with pytest.raises(RowsRefused, match="has no id"):
        sink.commit([{"id": "a", "amount": 1}, {"amount": 2}], {HERE: 2})
    assert database.read("SELECT * FROM orders") == []


def test_a_constraint_of_somebody_s_table_refuses_the_batch_whole(database):
    execute(database, "CREATE TABLE orders (id TEXT, amount BIGINT CHECK (amount < 10))")
    sink = sink_over(database)
    with pytest.raises(RowsRefused, match="CHECK constraint"):
        sink.commit([{"id": "a", "amount": 1}, {"id": "b", "amount": 10}], {HERE: 2})
    assert database.read("SELECT * FROM orders") == []
    assert sink.position([HERE]) == {HERE: None}


def test_of_a_table_that_is_there_only_its_columns_are_used(database):
    execute(database, "CREATE TABLE orders (id TEXT PRIMARY KEY, note TEXT DEFAULT 'theirs')")
    sink = sink_over(database, key=["id"])
    sink.commit([{"id": "a", "amount": 1}], {HERE: 1})
    assert database.read("SELECT id, note FROM orders") == [("a", "theirs")]
    assert sink.left_out == ("amount",)


def test_a_table_without_the_key_column_is_refused_with_what_it_has(database):
    execute(database, "CREATE TABLE orders (name TEXT, amount BIGINT)")
    with pytest.raises(Unusable, match="has no column id; it has amount, name"):
        sink_over(database, key=["id"]).position([HERE])


def test_a_table_with_none_of_the_columns_is_refused(database):
    execute(database, "CREATE TABLE orders (name TEXT)")
    with pytest.raises(Unusable, match="has no column id; it has name"):
        sink_over(database).position([HERE])


def test_a_table_that_cannot_keep_one_row_for_each_key_is_refused_at_the_start(database):
    execute(database, "CREATE TABLE orders (id TEXT, amount BIGINT)")
    sink = sink_over(database, key=["id"])
    for _ in range(2):
        with pytest.raises(Unusable, match="Add a unique index on"):
            sink.position([HERE])
    execute(database, "CREATE UNIQUE INDEX one_of_each ON orders (id)")
    sink.commit([{"id": "a", "amount": 1}] * 2, {HERE: 2})
    assert database.read("SELECT id, amount FROM orders") == [("a", 1)]


def test_names_are_names_whatever_they_look_like(database):
    odd = 'x"); DROP TABLE orders; --'
    sink = sink_over(database, [Column(odd, str), Column("select", int)], [odd], odd)
    sink.commit([{odd: "a", "select": 1}], {HERE: 1})
    assert database.columns(odd) == [odd, "select"]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_is_none_is_refused(database, name):
    with pytest.raises(InvalidName):
        sink_over(database, name=name).position([HERE])


@pytest.mark.parametrize(
    ("columns", "key"),
    [((), ()), ((Column("a"), Column("a")), ()), ((Column("a"),), ("b",))],
)
def test_a_declaration_that_cannot_work_is_refused_at_once(database, columns, key):
    with pytest.raises(InvalidRequest, match="needs columns, each once, its key among them"):
        sink_over(database, columns, key)


def test_two_sinks_of_one_database_keep_positions_of_their_own(database):
    table = SqlTable("orders", COLUMNS)
    one, other = SqlSink(database, "one", table), SqlSink(database, "other", table)
    one.commit([], {HERE: 5})
    assert other.position([HERE]) == {HERE: None}
    assert one.position([HERE]) == {HERE: 5}
