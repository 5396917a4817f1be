"""What a power cut may leave of the last commits of a local table, and how it heals."""

import polars as pl
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.core.errors import Damaged, OutcomeUnknown, Unavailable
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.applications import application_of
from forebay.lakehouse.tables.delta.durability import (
    LOG,
    TORN_MAX,
    make_durable,
    set_torn_commits_aside,
)
from forebay.lakehouse.tables.delta.handle import CHECKPOINT_COMMITS, TableHandle
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.reading import DeltaReader
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


def files_of(path):
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def make_unreadable(file):
    """Reading and looking at it fail, which is not the same as that it is gone."""
    content = file.read_bytes()
    file.unlink()
    file.symlink_to(file.name)
    return content


@pytest.mark.parametrize("file_of", [newest_rows, lambda path: commit_file(path, 2)])
def test_a_file_that_cannot_be_read_now_is_no_torn_commit(path, file_of):
    file = file_of(path)
    content = make_unreadable(file)
    with pytest.raises(Unavailable, match="tried again"):
        sink_at(path).position([HERE])
    file.unlink()
    file.write_bytes(content)
    assert sink_at(path).position([HERE]) == {HERE: 2}


def test_more_torn_commits_than_a_power_cut_leaves_are_left_to_a_person(path):
    sink = sink_at(path)
    for number in range(3, TORN_MAX + 2):
        sink.commit(ROWS[number - 1 : number], {HERE: number})
    for file in path.glob("day=*/*.parquet"):
        file.write_bytes(b"")
    before = files_of(path)
    with pytest.raises(Damaged, match="Nothing was touched"):
        sink_at(path).position([HERE])
    assert files_of(path) == before


# Checkpoints.


def checkpoint_file(path, version):
    return path / LOG / f"{version:020d}.checkpoint.parquet"


@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"PAR1 and no more"])
@pytest.mark.parametrize("commit_is_torn", [False, True])
def test_a_torn_checkpoint_is_set_aside_and_holds_nothing(path, content, commit_is_torn):
    DeltaTable(path).create_checkpoint()
    checkpoint_file(path, 2).write_bytes(content)
    if commit_is_torn:
        empty_the_log(path)
    at = 1 if commit_is_torn else 2
    sink = sink_at(path)
    assert sink.position([HERE]) == {HERE: at}
    sink.commit(ROWS[at:], {HERE: 4})
    assert sorted(pl.scan_delta(DeltaTable(path)).collect()["id"]) == ["1", "2", "3", "4"]
    assert not checkpoint_file(path, 2).exists()
    (position,) = DeltaReader(TableLocation(str(path))).describe().positions
    assert position.next_offset == 4


def test_a_torn_checkpoint_leaves_an_older_whole_one_in_use(path):
    DeltaTable(path).create_checkpoint()
    sink_at(path).commit(ROWS[2:3], {HERE: 3})
    for version in range(2):
        commit_file(path, version).unlink()
    DeltaTable(path).create_checkpoint()
    checkpoint_file(path, 3).write_bytes(b"")
    assert sink_at(path).position([HERE]) == {HERE: 3}
    assert checkpoint_file(path, 2).exists()


# Commits that their writer has not made durable.


class LostSync(TableHandle):
    """The commit happens, and the disk fails when it is made durable."""

    is_lost = True
    synced_since = ()

    def make_durable_since(self, version):
        LostSync.synced_since += (version,)
        super().make_durable_since(version)

    def append(self, frame, positions):
        super().append(frame, positions)
        if LostSync.is_lost:
            LostSync.is_lost = False
            raise OutcomeUnknown("Too many open files.")


class SinkOfLostSyncs(DeltaSink):
    def _open_handle(self):
        return LostSync(self._table.location)


def test_a_repeat_after_a_failed_sync_makes_durable_what_it_finds_stored(tmp_path):
    LostSync.is_lost, LostSync.synced_since = True, ()
    table = DeclaredTable(TableLocation(str(tmp_path / "orders")), (Column("id"), Column("day")))
    sink = SinkOfLostSyncs("orders-row", table)
    sink.position([HERE])
    with pytest.raises(OutcomeUnknown):
        sink.commit(ROWS[:1], {HERE: 1})
    sink.commit(ROWS[:1], {HERE: 1})
    assert LostSync.synced_since == (None, 0)


def commit_and_die(path, number):
    """As the client alone leaves it: a process was killed before it made its commit durable."""
    reached = CommitProperties(
        app_transactions=[Transaction(application_of("orders-row", HERE), number)]
    )
    row = pl.DataFrame(ROWS[number - 1 : number])
    write_deltalake(path, row, mode="append", commit_properties=reached)


def test_what_a_killed_process_has_committed_is_made_durable_before_its_position_is_told(path):
    """It is not the newest commit: what is made durable cannot be told apart otherwise."""
    commit_and_die(path, 3)
    commit_and_die(path, 4)
    (rows,) = (path / "day=2026-01-03").glob("*.parquet")
    content = make_unreadable(rows)
    sink = sink_at(path)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="power cut"):
            sink.position([HERE])
    rows.unlink()
    rows.write_bytes(content)
    assert sink.position([HERE]) == {HERE: 4}


def test_what_a_killed_process_has_committed_is_made_durable_before_more_is_put_on_top(path):
    there = SourcePartition("orders", 1, "topic-1")
    sink = sink_at(path)
    sink.position([there])
    commit_and_die(path, 3)
    (rows,) = (path / "day=2026-01-03").glob("*.parquet")
    make_unreadable(rows)
    with pytest.raises(OutcomeUnknown, match="power cut"):
        sink.commit(ROWS[:1], {there: 1})


def test_files_that_others_have_taken_away_are_passed_over(path):
    table = DeltaTable(path)
    table.optimize.compact()
    sink_at(path).commit(ROWS[2:3], {HERE: 3})
    DeltaTable(path).create_checkpoint()
    for file in (*path.glob("day=2026-01-01/*"), commit_file(path, 0), commit_file(path, 1)):
        file.unlink()
    (path / "day=2026-01-01").rmdir()
    assert sink_at(path).position([HERE]) == {HERE: 3}


def test_older_commits_than_a_checkpoint_ago_are_not_looked_at_again(path):
    handle = TableHandle(TableLocation(str(path)))
    for _ in range(CHECKPOINT_COMMITS + 1):
        handle.append(pl.DataFrame(ROWS[2:3]), {})
    make_unreadable(newest_rows(path))
    TableHandle(TableLocation(str(path))).make_durable_since(None)
