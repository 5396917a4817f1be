import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from contracts.state.adapters import Store
from contracts.state.member import ROUNDS
from forebay.core.errors import Closed, Damaged, InvalidRequest, RowsRefused, Unusable

MEMBER = Path(__file__).with_name("member.py")


@pytest.fixture
def orders(database):
    with database.transaction() as transaction:
        transaction.execute("CREATE TABLE orders (id TEXT NOT NULL PRIMARY KEY, amount BIGINT)")
    return database


def rows(database):
    return database.read("SELECT id, amount FROM orders ORDER BY id")


def test_rows_survive_closing_and_opening_again(orders, open_database):
    with orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES (?, ?)", ("a", 1))
    orders.close()
    assert rows(open_database()) == [("a", 1)]


@pytest.mark.parametrize(
    "value", [None, 0, -(2**63), 2**63 - 1, 0.5, "", "ümläut \n", b"", b"\x00\xff", "0", b"0"]
)
def test_a_value_comes_back_with_its_type(database, value):
    kind = {int: "BIGINT", float: "DOUBLE PRECISION", bytes: "BLOB"}.get(type(value), "TEXT")
    with database.transaction() as transaction:
        transaction.execute(f"CREATE TABLE kept (it {kind})")
        transaction.execute("INSERT INTO kept VALUES (?)", (value,))
    ((back,),) = database.read("SELECT it FROM kept")
    assert (type(back), back) == (type(value), value)


def test_a_block_that_raises_undoes_everything_before_it(orders):
    with suppress(ZeroDivisionError), orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES (?, ?)", ("a", 1))
        transaction.execute("CREATE TABLE more (id TEXT)")
        raise ZeroDivisionError
    assert rows(orders) == []
    assert orders.columns("more") == []


def test_an_interrupt_undoes_everything_before_it(orders):
    with suppress(KeyboardInterrupt), orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES (?, ?)", ("a", 1))
        raise KeyboardInterrupt
    assert rows(orders) == []


def test_rows_before_a_refused_one_are_not_left_behind(orders):
    with pytest.raises(RowsRefused, match="never take this row"), orders.transaction() as t:
        t.execute_many("INSERT INTO orders VALUES (?, ?)", [("a", 1), ("b", 2), ("a", 3)])
    assert rows(orders) == []


def test_a_refusal_that_was_swallowed_still_undoes_its_transaction(orders):
    def swallow() -> None:
        with orders.transaction() as transaction:
            transaction.execute("INSERT INTO orders VALUES (?, ?)", ("a", 1))
            with suppress(RowsRefused):
                transaction.execute("INSERT INTO orders VALUES (?, ?)", ("a", 2))

    with pytest.raises(RowsRefused):
        swallow()
    assert rows(orders) == []


@pytest.mark.parametrize("value", [None, 2**63, "\ud800"])
def test_a_value_no_column_can_hold_is_refused_as_the_row_s_fault(orders, value):
    with pytest.raises(RowsRefused), orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES (?, 1)", (value,))
    assert rows(orders) == []


def test_a_statement_after_the_block_changes_nothing(orders):
    with orders.transaction() as transaction:
        pass
    with pytest.raises(Closed):
        transaction.execute("INSERT INTO orders VALUES ('late', 1)")
    assert rows(orders) == []


def test_a_transaction_inside_another_is_refused_instead_of_waiting_for_itself(orders):
    with orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES ('a', 1)")
        with pytest.raises(InvalidRequest, match="not nested"), orders.transaction():
            pass
    assert rows(orders) == [("a", 1)]


def test_reading_inside_a_block_sees_what_is_durable_and_waits_for_nobody(orders):
    with orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES ('a', 1)")
        assert rows(orders) == []
        assert transaction.execute("SELECT id FROM orders") == [("a",)]


def test_a_read_that_would_write_is_refused(orders):
    with pytest.raises(Unusable):
        orders.read("INSERT INTO orders VALUES ('a', 1)")
    assert rows(orders) == []


def test_two_threads_in_transactions_do_not_interleave(orders):
    with orders.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES ('n', 0)")

    def count() -> None:
        for _ in range(100):
            with orders.transaction() as t:
                ((amount,),) = t.execute("SELECT amount FROM orders")
                t.execute("UPDATE orders SET amount = ?", (amount + 1,))

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(orders) == [("n", 300)]


def test_two_processes_in_transactions_do_not_interleave(database, kept):
    with database.transaction() as transaction:
        transaction.execute("CREATE TABLE counter (number BIGINT NOT NULL)")
        transaction.execute("INSERT INTO counter VALUES (0)")
    at_once("count", kept)
    assert database.read("SELECT number FROM counter") == [(2 * ROUNDS,)]


def test_two_processes_that_open_a_new_store_at_once_both_can(kept, open_database):
    at_once("migrate", kept)
    assert open_database().columns("schema_version") != []


def test_columns_are_told_in_order_and_none_of_a_table_that_is_not_there(orders):
    assert orders.columns("orders") == ["id", "amount"]
    assert orders.columns("nothing") == []


def test_a_table_that_is_missing_is_somebody_s_to_mend(database):
    with pytest.raises(Unusable, match="does not hold what this Forebay expects"):
        database.read("SELECT * FROM nothing")


def test_a_closed_database_says_so(orders):
    orders.close()
    orders.close()
    with pytest.raises(Closed):
        rows(orders)
    with pytest.raises(Closed), orders.transaction():
        pass


def test_a_store_that_is_no_database_is_refused_with_its_name_and_left_alone(kept):
    kept.damage()
    with pytest.raises(Damaged, match=r"state\.db.*Nothing was changed.*restore it"):
        kept.open()
    with pytest.raises(Damaged):
        kept.open()


def at_once(task: str, kept: Store) -> None:
    members = [
        subprocess.Popen(
            [sys.executable, str(MEMBER), task, kept.kind, kept.place],
            env={**os.environ, "PYTHONPATH": str(MEMBER.parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    assert [member.stdout.readline() for member in members] == ["ready\n"] * 2
    for member in members:
        member.stdin.write("go\n")
        member.stdin.flush()
    said = [member.communicate(timeout=60)[0] for member in members]
    assert said == ["done\n"] * 2
