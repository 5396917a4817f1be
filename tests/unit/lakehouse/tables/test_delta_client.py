"""Facts of the Delta client that the sink leans on: a newer one is used only when these pass."""

import polars as pl
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

ROWS = pl.DataFrame({"id": ["a"], "n": [1]})


@pytest.fixture
def path(tmp_path):
    write_deltalake(tmp_path / "t", ROWS)
    return tmp_path / "t"


def reached(number):
    return CommitProperties(app_transactions=[Transaction("app", number)], max_commit_retries=100)


def append(table, number):
    write_deltalake(table, ROWS, mode="append", commit_properties=reached(number))


def rows_in(path):
    return pl.scan_delta(DeltaTable(path)).collect().height


def test_a_handle_from_before_another_commit_of_the_same_position_is_refused(path):
    one, other = DeltaTable(path), DeltaTable(path)
    append(one, 1)
    with pytest.raises(CommitFailedError):
        append(other, 1)
    assert rows_in(path) == 2


def test_a_fresh_handle_is_not_refused_so_who_writes_must_have_looked(path):
    append(DeltaTable(path), 1)
    append(DeltaTable(path), 1)
    assert rows_in(path) == 3


def test_an_append_without_rows_stores_its_position(path):
    write_deltalake(DeltaTable(path), ROWS.clear(), mode="append", commit_properties=reached(7))
    assert DeltaTable(path).transaction_version("app") == 7


def test_a_merge_that_changes_nothing_stores_no_position(path):
    merger = DeltaTable(path).merge(
        ROWS, "t.id = s.id", source_alias="s", target_alias="t", commit_properties=reached(7)
    )
    merger.when_not_matched_insert_all().execute()
    assert DeltaTable(path).transaction_version("app") is None


def test_a_position_may_be_below_nothing(path):
    append(DeltaTable(path), -1)
    assert DeltaTable(path).transaction_version("app") == -1


def many_small_files(path):
    for _ in range(6):
        write_deltalake(path, ROWS, mode="append")
    return rows_in(path)


def compact(table):
    table.optimize.compact()


def order(table):
    table.optimize.z_order(["id"])


@pytest.mark.parametrize("first", [compact, order])
def test_of_two_compactions_that_race_one_is_refused_and_no_row_is_doubled(path, first):
    """deltalake 1.6.4 to 1.6.6 commit both, and double every row."""
    count = many_small_files(path)
    one, other = DeltaTable(path), DeltaTable(path)
    first(one)
    with pytest.raises(CommitFailedError):
        compact(other)
    assert rows_in(path) == count


def test_positions_survive_checkpoints(path):
    table = DeltaTable(path)
    for number in range(3):
        append(table, number)
    table.create_checkpoint()
    assert DeltaTable(path).transaction_version("app") == 2
