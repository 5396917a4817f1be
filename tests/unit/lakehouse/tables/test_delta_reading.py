"""A table as people see it, and what a check of it finds."""

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.core.errors import InvalidRequest, Unusable
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.reading import DeltaReader
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.lakehouse.tables.port import StoredPosition, TableColumn
from forebay.state.sql_values import Column

FIRST = SourcePartition("orders", 0, "broker/1")
SECOND = SourcePartition("orders", 1, "broker/1")
COLUMNS = (Column("id"), Column("amount", int), Column("region"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "orders"


def fill(path, commits=3):
    """A row of each of two regions in every commit."""
    table = DeclaredTable(TableLocation(str(path)), COLUMNS, ("id",), "upsert", ("region",))
    sink = DeltaSink("orders-row", table)
    for number in range(1, commits + 1):
        rows = [
            {"id": f"{region}-{number}", "amount": number, "region": region}
            for region in ("a b/c%", "ü")
        ]
        sink.commit(rows, {FIRST: number, SECOND: 10 * number})


def reader(path) -> DeltaReader:
    return DeltaReader(TableLocation(str(path)))


def faults(path, key=()):
    return list(reader(path).verify(key, lambda done: None))


def files(path):
    return sorted(file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts)


@pytest.mark.parametrize("commits", [3, 30])
def test_a_table_is_described_from_before_and_after_a_checkpoint(path, commits):
    fill(path, commits)
    assert bool(list(path.glob("_delta_log/*.checkpoint*.parquet"))) == (commits > 25)
    told = reader(path).describe()
    assert told.summary.version == commits
    assert told.summary.rows == told.summary.files == 2 * commits
    assert told.summary.size == sum(file.stat().st_size for file in files(path))
    assert told.columns == (
        TableColumn("id", "string", nullable=True),
        TableColumn("amount", "long", nullable=True),
        TableColumn("region", "string", nullable=True),
    )
    assert (told.partition_by, told.partitions, told.key) == (("region",), 2, ("id",))
    assert told.positions == (
        StoredPosition("orders-row", FIRST, commits),
        StoredPosition("orders-row", SECOND, 10 * commits),
    )


def test_a_table_that_nobody_of_ours_wrote_is_described_too(path):
    write_deltalake(path, pl.DataFrame({"id": ["a"]}))
    told = reader(path).describe()
    assert (told.key, told.positions, told.summary.rows) == ((), (), 1)


def test_a_table_without_rows_is_described(path):
    fill(path, commits=0)
    with pytest.raises(Unusable, match="There is no table"):
        reader(path)
    sink = DeltaSink("s", DeclaredTable(TableLocation(str(path)), COLUMNS))
    sink.position([FIRST])
    told = reader(path).describe()
    assert (told.summary.rows, told.summary.files, told.summary.size) == (0, 0, 0)
    assert faults(path) == []


def test_history_tells_the_newest_first(path):
    fill(path)
    told = reader(path).history(2)
    assert [commit.version for commit in told] == [3, 2]
    assert all(commit.operation == "WRITE" and commit.at_ms > 0 for commit in told)
    assert "num_added_rows 2" in told[0].detail


def test_a_whole_table_has_no_faults_and_every_file_was_looked_at(path):
    fill(path)
    looked_at = []
    assert list(reader(path).verify((), looked_at.append)) == []
    assert looked_at == [1, 2, 3, 4, 5, 6]


def test_a_file_that_is_gone_and_one_that_was_cut_are_found(path):
    fill(path)
    gone, cut, *_ = files(path)
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    found = {(fault.kind, path / fault.subject) for fault in faults(path)}
    assert found == {("missing_file", gone), ("wrong_size", cut)}


def test_a_key_that_is_there_twice_is_found_with_how_often(path):
    fill(path)
    row = pl.DataFrame({"id": ["ü-2"], "amount": [2], "region": ["ü"]})
    for _ in range(2):
        write_deltalake(path, row, mode="append")
    (fault,) = faults(path)
    assert (fault.kind, fault.subject) == ("doubled_row", "ü-2")
    assert "3 rows" in fault.detail
    assert faults(path, ("id", "amount")) != []


def test_a_key_that_is_no_column_is_told(path):
    fill(path)
    with pytest.raises(InvalidRequest, match="no column number; it has id, amount, region"):
        faults(path, ("number",))


@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_rows_are_read_in_batches_of_the_partitions_asked_for(path, batch):
    fill(path)
    batches = list(reader(path).rows(["id", "amount"], ["ü"], batch))
    assert all(len(rows) <= batch for rows in batches)
    assert sorted(row for rows in batches for row in rows) == [("ü-1", 1), ("ü-2", 2), ("ü-3", 3)]
    everything = [row for rows in reader(path).rows(["id"]) for row in rows]
    assert len(everything) == 6


def test_a_reader_answers_from_the_version_it_was_opened_at(path):
    fill(path, commits=1)
    opened = reader(path)
    write_deltalake(
        path, pl.DataFrame({"id": ["x"], "amount": [1], "region": ["x"]}), mode="append"
    )
    assert opened.summary().rows == 2
    assert reader(path).summary().rows == 3
    assert DeltaTable(path).version() == 2
