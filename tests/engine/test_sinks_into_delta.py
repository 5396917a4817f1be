"""A sink stage over a real Delta table: where it begins, and what becomes of rows it refuses."""

import polars as pl
import pytest
from deltalake import DeltaTable

from engine.depot import SALES, Depot
from forebay.core.records import TopicPartition
from forebay.core.topics import TopicSpec
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.state.sql_values import Column

AT = TopicPartition(SALES, 0)
COLUMNS = (Column("id"), Column("amount", int))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sales"


def sink_at(path, mode="append") -> DeltaSink:
    key = () if mode == "append" else ("id",)
    table = DeclaredTable(TableLocation(str(path)), COLUMNS, key, mode)
    return DeltaSink("shop-rows", table)


def ids(path):
    return sorted(pl.scan_delta(DeltaTable(path)).collect()["id"])


def run(depot, path, mode="append"):
    member = depot.member(sink_at(path, mode))
    member.run_until_idle()
    member.consumer.inner.close()


def test_a_process_goes_on_where_the_table_stands(path):
    depot = Depot()
    depot.produce("1", "2", "skip", "bad", "3")
    run(depot, path)
    depot.produce("4")
    run(depot, path)
    assert ids(path) == ["1", "2", "3", "4"]
    assert depot.letters() == [b"bad"]


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(path):
    depot = Depot()
    depot.produce("1", "2", "3")
    run(depot, path)
    depot.admin.delete_topic(SALES)
    depot.admin.create_topic(TopicSpec(SALES, 1))
    depot.produce("4", "5")
    run(depot, path)
    assert ids(path) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("mode", ["append_missing", "upsert"])
def test_a_table_moved_to_another_broker_reads_all_of_its_log_and_doubles_no_key(path, mode):
    embedded, kafka = Depot(), Depot()
    embedded.produce("1", "2", "3")
    run(embedded, path, mode)
    kafka.produce("2", "3", "4")
    run(kafka, path, mode)
    assert ids(path) == ["1", "2", "3", "4"]
    embedded.produce("5")
    run(embedded, path, mode)
    assert ids(path) == ["1", "2", "3", "4", "5"], "it still stands where it stood there"


def test_a_position_that_retention_passed_is_held_until_a_person_decides(path):
    depot = Depot()
    depot.produce("1", "2")
    run(depot, path)
    depot.produce("3", "4", "5")
    depot.admin.trim({AT: 4})
    member = depot.member(sink_at(path))
    member.step(20, seconds=0.5)
    assert ids(path) == ["1", "2"]
    (reason,) = member.health.reasons
    assert "forebay sinks skip" in reason
    (source,) = member.loop._starts.sources.values()
    member.sink.commit([], {source: 4})
    member.run_until_idle()
    assert ids(path) == ["1", "2", "5"]


def test_a_batch_of_skips_alone_moves_the_position_in_the_table(path):
    depot = Depot()
    depot.produce("skip", "skip", "skip")
    run(depot, path)
    assert ids(path) == []
    member = depot.member(sink_at(path))
    member.run_until_idle()
    assert member.loop.counters.delivered == 0


def test_a_row_the_table_refuses_is_buried_alone(path):
    depot = Depot(make_row=lambda record: {"id": record.value.decode(), "amount": amount(record)})
    depot.produce("1", "2", "wrong", "3")
    run(depot, path)
    assert ids(path) == ["1", "2", "3"]
    assert depot.letters() == [b"wrong"]


def amount(record):
    return "many" if record.value == b"wrong" else 1


def test_a_second_process_that_took_over_keeps_the_first_from_doubling_rows(path):
    depot = Depot()
    depot.produce("1", "2", "3")
    first = depot.member(sink_at(path))
    first.writer.runs_at_once = False
    first.step(6, seconds=0.1)
    assert first.writer.pending is not None, "its batch is on the way"
    first.expel()
    run(depot, path)
    first.writer.finish()
    first.writer.runs_at_once = True
    depot.produce("4")
    first.run_until_idle()
    assert ids(path) == ["1", "2", "3", "4"]
