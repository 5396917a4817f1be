"""Two writers, others that change the table, and processes that die: no row is lost or doubled."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from forebay.core.errors import AccessDenied, Fenced, OutcomeUnknown, Unavailable, Unusable
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta import handle as handles
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.state.sql_values import Column

FIRST = SourcePartition("orders", 0, "topic-1")
SECOND = SourcePartition("orders", 1, "topic-1")
MODES = ("append", "append_missing", "upsert")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "orders"


def sink_at(path, mode="append", name="orders-row", kind=DeltaSink) -> DeltaSink:
    columns = (Column("id"), Column("amount", int))
    key = () if mode == "append" else ("id",)
    return kind(name, DeclaredTable(TableLocation(str(path)), columns, key, mode))


def order(id, amount=1):
    return {"id": id, "amount": amount}


def rows_in(path):
    return sorted(pl.scan_delta(DeltaTable(path)).collect().rows())


def versions_of(path):
    return DeltaTable(path).version()


# Two writers.


@pytest.mark.parametrize("mode", MODES)
def test_a_writer_that_another_has_overtaken_stores_nothing(path, mode):
    slow, quick = sink_at(path, mode), sink_at(path, mode)
    slow.position([FIRST])
    quick.position([FIRST])
    quick.commit([order("a")], {FIRST: 1})
    with pytest.raises(Fenced, match="by another writer"):
        slow.commit([order("a"), order("b")], {FIRST: 2})
    assert rows_in(path) == [("a", 1)]
    assert slow.position([FIRST]) == {FIRST: 1}
    slow.commit([order("b")], {FIRST: 2})
    assert rows_in(path) == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("mode", MODES)
def test_the_same_batch_of_two_writers_is_stored_once(path, mode):
    one, other = sink_at(path, mode), sink_at(path, mode)
    for sink in (one, other):
        sink.position([FIRST])
    for sink in (one, other):
        sink.commit([order("a")], {FIRST: 1})
    assert rows_in(path) == [("a", 1)]


@pytest.mark.parametrize("mode", MODES)
def test_two_writers_of_different_partitions_do_not_wait_for_each_other(path, mode):
    one, other = sink_at(path, mode), sink_at(path, mode)
    one.position([FIRST])
    other.position([SECOND])
    for number in range(1, 4):
        one.commit([order(f"one-{number}")], {FIRST: number})
        other.commit([order(f"other-{number}")], {SECOND: number})
    assert [id for id, _ in rows_in(path)] == [
        *(f"one-{number}" for number in range(1, 4)),
        *(f"other-{number}" for number in range(1, 4)),
    ]


@pytest.mark.parametrize("mode", ["append_missing", "upsert"])
def test_keys_that_another_writer_has_stored_meanwhile_are_known_after_a_handover(path, mode):
    old, new = sink_at(path, mode), sink_at(path, mode)
    new.position([SECOND])
    new.commit([order("mine")], {SECOND: 1})
    old.position([FIRST])
    old.commit([order("a")], {FIRST: 1})
    new.position([FIRST])
    new.commit([order("a"), order("b")], {FIRST: 3})
    assert [id for id, _ in rows_in(path)] == ["a", "b", "mine"]


def test_two_sinks_of_one_table_keep_positions_of_their_own(path):
    one, other = sink_at(path, name="one"), sink_at(path, name="other")
    one.commit([], {FIRST: 5})
    assert other.position([FIRST]) == {FIRST: None}
    assert one.position([FIRST]) == {FIRST: 5}


@pytest.mark.parametrize("mode", MODES)
def test_writers_at_the_same_time_lose_and_double_nothing(path, mode):
    """Four partitions, a thread each; merges into one partition of the table conflict."""
    sink_at(path, mode).position([FIRST])
    failures = []

    def write(number):
        source = SourcePartition("orders", number, "topic-1")
        sink = sink_at(path, mode)
        sink.position([source])
        try:
            for at in range(1, 6):
                rows = [order(f"{number}-{at}"), order(f"{number}-same", at)]
                sink.commit(rows, {source: at})
        except Exception as error:  # noqa: BLE001  told by the test's thread
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    same = {"append": range(1, 6), "append_missing": [1], "upsert": [5]}[mode]
    expected = [(f"{number}-{at}", 1) for number in range(4) for at in range(1, 6)]
    expected += [(f"{number}-same", amount) for number in range(4) for amount in same]
    assert rows_in(path) == sorted(expected)


# Others that change the table.


def compact(path):
    DeltaTable(path).optimize.compact()


def update(path):
    DeltaTable(path).update(updates={"amount": "amount + 100"}, predicate="id = 'a'")


def append(path):
    row = pl.DataFrame({"id": ["theirs"], "amount": [1]})
    write_deltalake(path, row, mode="append")


@pytest.mark.parametrize("change", [compact, update, append])
@pytest.mark.parametrize("mode", MODES)
def test_a_change_by_somebody_else_is_met_by_trying_again(path, mode, change):
    sink = sink_at(path, mode)
    sink.commit([order("a")], {FIRST: 1})
    sink.commit([order("b")], {FIRST: 2})
    change(path)
    sink.commit([order("b", 1), order("c")], {FIRST: 4})
    ids = [id for id, _ in rows_in(path) if id != "theirs"]
    assert ids == (["a", "b", "b", "c"] if mode == "append" else ["a", "b", "c"])
    assert sink.position([FIRST]) == {FIRST: 4}


@pytest.mark.parametrize("mode", ["append_missing", "upsert"])
def test_a_key_that_somebody_else_has_stored_is_not_stored_again(path, mode):
    sink = sink_at(path, mode)
    sink.commit([order("a")], {FIRST: 1})
    append(path)
    sink.commit([order("b")], {FIRST: 2})
    sink.commit([order("theirs", 1)], {FIRST: 3})
    assert [id for id, _ in rows_in(path)] == ["a", "b", "theirs"]


def test_a_table_that_is_gone_is_told_and_not_made_again_half_filled(path):
    sink = sink_at(path)
    sink.commit([order("a")], {FIRST: 1})
    path.rename(path.with_name("away"))
    for _ in range(2):
        with pytest.raises((Unusable, OutcomeUnknown)):
            sink.commit([order("b")], {FIRST: 2})
    with pytest.raises(Unusable, match="There is no table"):
        sink.position([FIRST])
    shutil.rmtree(path)  # the client's first try has left files there
    path.with_name("away").rename(path)
    assert sink.position([FIRST]) == {FIRST: 1}
    sink.commit([order("b")], {FIRST: 2})
    assert rows_in(path) == [("a", 1), ("b", 1)]


def test_a_place_where_no_table_can_be_is_told():
    with pytest.raises((Unusable, AccessDenied), match="/proc/nowhere"):
        sink_at(Path("/proc/nowhere/orders")).position([FIRST])


# A commit that nobody heard the answer of.


class LostAnswer(handles.TableHandle):
    """The commit happens, and then the connection is gone."""

    is_lost = True

    def append(self, frame, positions):
        super().append(frame, positions)
        if LostAnswer.is_lost:
            LostAnswer.is_lost = False
            raise OutcomeUnknown("No answer came.")


class SinkOfLostAnswers(DeltaSink):
    def _open_handle(self):
        return LostAnswer(self._table.location)


def test_a_commit_whose_answer_was_lost_is_not_stored_again(path):
    LostAnswer.is_lost = True
    sink = sink_at(path, kind=SinkOfLostAnswers)
    sink.position([FIRST])
    with pytest.raises(OutcomeUnknown):
        sink.commit([order("a")], {FIRST: 1})
    sink.commit([order("a")], {FIRST: 1})
    sink.commit([order("b")], {FIRST: 2})
    assert rows_in(path) == [("a", 1), ("b", 1)]


class RefusedCommit(handles.TableHandle):
    def append(self, frame, positions):
        raise CommitFailedError("Metadata changed since last commit.")


class SinkOfRefusedCommits(DeltaSink):
    def _open_handle(self):
        return RefusedCommit(self._table.location)


def test_a_commit_that_is_refused_again_and_again_is_told_with_the_client_s_reason(path):
    sink = sink_at(path, kind=SinkOfRefusedCommits)
    with pytest.raises(Unavailable, match=r"\(Metadata changed.*held and tried again"):
        sink.commit([order("a")], {FIRST: 1})


# Processes that are killed.

CHILD = """
import sys
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.state.sql_values import Column

FIRST = SourcePartition("orders", 0, "topic-1")
path, mode, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
key = () if mode == "append" else ("id",)
columns = (Column("id"), Column("amount", int), Column("text"))
sink = DeltaSink("orders-row", DeclaredTable(TableLocation(path), columns, key, mode))
at = sink.position([FIRST])[FIRST] or 0
while at < last:
    rows = [{"id": str(number), "amount": 1, "text": "x" * 500} for number in range(at, at + 50)]
    sink.commit(rows, {FIRST: at + 50})
    at += 50
"""


def child(path, mode, last):
    return subprocess.Popen([sys.executable, "-c", CHILD, str(path), mode, str(last)])


def is_between_write_and_commit(path, process):
    """Stopped there: a file of rows is whole, and no commit of the log names it."""
    os.kill(process.pid, signal.SIGSTOP)
    files = {file.name for file in path.glob("*.parquet")}
    log = b"".join(file.read_bytes() for file in path.glob("_delta_log/*.json"))
    if any(name.encode() not in log for name in files):
        return True
    os.kill(process.pid, signal.SIGCONT)
    return False


@pytest.mark.parametrize("mode", MODES)
def test_killed_between_the_write_of_rows_and_their_commit_none_is_doubled_or_lost(path, mode):
    process = child(path, mode, 100_000)
    seen, deadline = 0, time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            count = len(list(path.glob("*.parquet")))
            if count > seen and is_between_write_and_commit(path, process):
                break
            seen = count
        else:
            pytest.fail("the child was never between the two")
    finally:
        process.kill()
        process.wait()
    stored = sink_at(path, mode).position([FIRST])[FIRST] or 0
    assert len(rows_in(path)) == stored
    assert child(path, mode, stored + 200).wait(60) == 0
    ids = pl.scan_delta(DeltaTable(path)).collect()["id"].to_list()
    assert sorted(map(int, ids)) == list(range(stored + 200))


@pytest.mark.parametrize("mode", MODES)
def test_killed_again_and_again_none_is_doubled_or_lost(path, mode):
    for life in range(1, 4):
        process = child(path, mode, 1_000_000)
        log = path / "_delta_log"
        while len(list(log.glob("*.json"))) < 6 * life:
            assert process.poll() is None
            time.sleep(0.005 * life)
        process.kill()
        process.wait()
    stored = sink_at(path, mode).position([FIRST])[FIRST]
    ids = pl.scan_delta(DeltaTable(path)).collect()["id"].to_list()
    assert sorted(map(int, ids)) == list(range(stored))
