"""What a power cut may leave of the last commits of a local table, and how it heals."""

import polars as pl
import pytest
from deltalake import DeltaTable

from forebay.core.errors import Damaged, OutcomeUnknown
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.durability import make_durable, set_torn_commits_aside
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.observability.catalogue import silent
from forebay.state.sql_values import Column

HERE = SourcePartition("orders", 0, "topic-1")
ROWS = [{"id": str(number), "day": f"2026-01-0{number}"} for number in range(1, 5)]


@pytest.fixture
def path(tmp_path):
    """A table of two commits of one row each, after the one that made it."""
    sink = sink_at(tmp_path / "orders")
    for number in (1, 2):
        sink.commit(ROWS[number - 1 : number], {HERE: number})
    return tmp_path / "orders"


def sink_at(path, emit=silent) -> DeltaSink:
    columns = (Column("id"), Column("day"))
    table = DeclaredTable(TableLocation(str(path)), columns, (), "append", ("day",))
    return DeltaSink("orders-row", table, emit)


def commit_file(path, version):
    return path / "_delta_log" / f"{version:020d}.json"


def newest_rows(path):
    (file,) = (path / "day=2026-01-02").glob("*.parquet")
    return file


def cut_the_log(path):
    log = commit_file(path, 2)
    log.write_bytes(log.read_bytes()[:100])


def empty_the_log(path):
    commit_file(path, 2).write_bytes(b"")


def cut_the_rows(path):
    rows = newest_rows(path)
    rows.write_bytes(rows.read_bytes()[:10])


def lose_the_rows(path):
    newest_rows(path).unlink()


def cut_both_commits(path):
    cut_the_log(path)
    commit_file(path, 1).write_bytes(b"")


CUTS = (cut_the_log, empty_the_log, cut_the_rows, lose_the_rows, cut_both_commits)


@pytest.mark.parametrize("cut", CUTS)
def test_a_commit_that_a_power_cut_has_torn_is_set_aside_and_its_rows_are_read_again(path, cut):
    cut(path)
    told = []
    sink = sink_at(path, lambda event, **fields: told.append((event, fields["version"])))
    at = sink.position([HERE])[HERE] or 0
    assert at == (0 if cut is cut_both_commits else 1)
    sink.commit(ROWS[at:], {HERE: 4})
    assert sorted(pl.scan_delta(DeltaTable(path)).collect()["id"]) == ["1", "2", "3", "4"]
    assert told == [("table.commit_set_aside", version) for version in (2, 1) if version > at]


def test_a_whole_table_is_left_as_it_is(path):
    before = sorted(file.name for file in path.rglob("*"))
    assert set_torn_commits_aside(path) == []
    assert sorted(file.name for file in path.rglob("*")) == before


def test_a_commit_that_a_checkpoint_holds_is_never_set_aside(path):
    DeltaTable(path).create_checkpoint()
    empty_the_log(path)
    assert set_torn_commits_aside(path) == []
    assert sink_at(path).position([HERE]) == {HERE: 2}


def test_damage_that_is_not_at_the_end_is_told_and_left_to_a_person(path):
    commit_file(path, 1).write_bytes(commit_file(path, 1).read_bytes()[:100])
    with pytest.raises(Damaged, match="Restore"):
        sink_at(path).position([HERE])
    assert commit_file(path, 1).exists()


def test_a_commit_whose_files_cannot_be_made_durable_counts_as_unknown(path):
    lose_the_rows(path)
    with pytest.raises(OutcomeUnknown, match="power cut"):
        make_durable(path, 2)
