"""A pipeline in this process: its parts, its end, and what it says of itself."""

import time
from contextlib import contextmanager

import pytest

from forebay import Done, Pipeline, Reject, Retry
from forebay.core.errors import InvalidRequest, Unavailable
from forebay.core.records import Record, TopicPartition
from forebay.engine.assembly import Site
from forebay.engine.doors import LoopOptions
from forebay.engine.run import PipelineRun, Until, check_copies
from forebay.engine.stages import Topic
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.testing import MemoryBroker
from forebay.testing.memory_sink import MemorySink


class Works:
    """A broker in memory, with all that a pipeline needs around it."""

    def __init__(self, pipeline):
        self.pipeline = pipeline
        self.broker = MemoryBroker()
        self.sinks = {}
        create_topics(self.broker.admin(), plan_topics(pipeline), foreign_too=True)
        self.sender = self.broker.producer()
        self.site = Site(
            self.broker, SystemClock(), silent, self.open_sink, open_letter_file=lambda path: None
        )

    def open_sink(self, pipeline, stage):
        return self.sinks.setdefault(stage.name, MemorySink())

    def produce(self, topic, count, partition=0):
        for number in range(count):
            self.sender.send(Record(b"%d" % number, b"k", [], topic, partition))
        self.sender.poll(0)

    def run(self, **options):
        return PipelineRun(self.pipeline, self.site, **options).run()


@pytest.fixture
def handled():
    return []


@pytest.fixture
def works(handled):
    """Orders are slow, one at a time; receipts are quick."""
    pipeline = Pipeline("shop", topics=[Topic("orders", 1), Topic("receipts", 1)])

    @pipeline.stage("orders", retry=["1h"], concurrency=1)
    def charge(value: bytes):
        time.sleep(0.002)
        handled.append(value)
        if value == b"3":
            return Reject("three is bad")
        if value == b"4":
            return Retry("four is busy")
        return Done({"receipts": value})

    @pipeline.stage("receipts", retry=[])
    def send(value: bytes):
        return None

    @pipeline.sink("receipts", file="rows.ndjson", every="100ms")
    def row(value: bytes):
        return {"id": value.decode()}

    return Works(pipeline)


def test_until_idle_everything_is_handled_stored_and_counted(works):
    works.produce("orders", 6)
    receipt = works.run(until=Until(idle=True))
    assert [row["id"] for row in works.sinks["row"].rows] == ["0", "1", "2", "5"]
    assert (receipt.handled, receipt.retried, receipt.dead_lettered) == (9, 1, 1)
    assert (receipt.waiting, receipt.left_behind) == (1, 0)
    assert receipt.committed["orders:0"] == 6


def test_until_an_offset_what_is_before_it_is_handled_by_a_pipeline_of_many_stages(works, handled):
    """The stages that do not read that topic had nothing to wait for and ended the run."""
    works.produce("orders", 300)
    receipt = works.run(until=Until(stops={TopicPartition("orders", 0): 250}))
    assert len(handled) == 250
    assert receipt.committed["orders:0"] == 250


def test_until_so_many_records_no_more_than_that_are_handled(works, handled):
    works.produce("orders", 80)
    works.run(until=Until(records=7))
    assert len(handled) == 7


def test_until_a_time_it_ends(works):
    assert works.run(until=Until(seconds=0.1)).left_behind == 0


def test_a_part_runs_what_it_says_and_nothing_else(works):
    works.produce("orders", 3)
    receipt = works.run(part="charge", until=Until(idle=True))
    assert set(receipt.stages) == {"charge"}
    assert (receipt.handled, works.sinks) == (3, {})
    receipt = works.run(part="sinks", until=Until(seconds=0.3))
    assert set(receipt.stages) == {"row"}


def test_a_part_that_nobody_has_is_refused(works):
    with pytest.raises(InvalidRequest, match=r"no worker carge; it has charge, send, row"):
        works.run(part="carge")


def test_a_broker_that_is_away_for_a_moment_is_not_the_end_of_a_run_until_idle(works):
    works.produce("orders", 3)
    admin = Forgetful(works.broker.admin())
    works.broker.admin = lambda: admin
    assert works.run(until=Until(idle=True)).committed["orders:0"] == 3


class Forgetful:
    """An admin that fails the first few times it is asked about groups."""

    def __init__(self, inner):
        self._inner = inner
        self._fails = 3

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def describe_group(self, name):
        self._fails -= 1
        if self._fails >= 0:
            raise Unavailable("The broker is away for a moment.")
        return self._inner.describe_group(name)


def test_a_handler_that_asks_for_the_end_ends_all_and_its_record_is_read_again(works, handled):
    pipeline = Pipeline("shop", topics=[Topic("orders", 1)])

    @pipeline.stage("orders", retry=[])
    def leave(value: bytes):
        raise SystemExit(3)

    works = Works(pipeline)
    works.produce("orders", 1)
    run = PipelineRun(pipeline, works.site)
    receipt = run.run()
    assert isinstance(run.stopped_by, SystemExit)
    assert receipt.committed["orders:0"] == 0


def test_what_a_loop_raises_comes_out_of_the_run_and_shared_things_are_closed():
    closed = []
    pipeline = Pipeline("shop", topics=[Topic("orders", 1)])

    @pipeline.share
    @contextmanager
    def client():
        yield 1
        closed.append("client")

    @pipeline.stage("orders")
    def charge(value: bytes):
        return None

    works = Works(pipeline)
    works.broker.producer = lambda settings: 1 / 0
    with pytest.raises(ZeroDivisionError):
        works.run(options=LoopOptions(drain_seconds=0.5))
    assert closed == ["client"]


def copied():
    pipeline = Pipeline("shop")
    columns, table = {"id": str}, "sqlite:///rows.db?table=rows"
    for name, options in {
        "filed": {"file": "rows.ndjson"},
        "keyed": {"table": table, "columns": columns, "key": "id"},
        "shared": {"table": table, "columns": columns, "key": "id", "keyed_by_record": True},
        "added": {"table": table, "columns": columns},
    }.items():
        pipeline.sink("orders", name=name, **options)(lambda value: value)
    pipeline.stage("orders", name="charge")(lambda value: None)
    return pipeline


@pytest.mark.parametrize("part", ["filed", "keyed", "dlq-handler"])
def test_what_has_one_writer_is_not_started_twice(part):
    """The second process would wait for the first one's file, and hold its partitions."""
    check_copies(copied(), part, 1)
    with pytest.raises(InvalidRequest, match="one process"):
        check_copies(copied(), part, 2)


@pytest.mark.parametrize("part", ["shared", "added", "charge", "retry-scheduler"])
def test_what_may_have_many_writers_may_have_copies(part):
    check_copies(copied(), part, 5)
