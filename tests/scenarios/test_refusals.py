"""What a pipeline needs is away for a while: it holds, says so, goes on, and has lost nothing."""

import json
import sqlite3
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from forebay import Pipeline, Record, Reject, Retry, Topic
from forebay.cli.run import vitals
from forebay.core.envelope import read_envelope
from forebay.core.records import TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.assembly import Site
from forebay.engine.run import PipelineRun
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.testing.memory import MemoryBroker
from forebay.testing.waiting import eventually
from scenarios.place import column_of

FAILING = """
@flow.stage(INPUT, name="work", retry=["1s"])
def work(record):
    if int(record.value) % 100 == 0:
        return Reject("every hundredth is bad")
    note(record.value.decode())
"""
STORED = """
@flow.stage(INPUT, name="work", retry=["1s"], emits=[OUT])
def work(record):
    note(record.value.decode())
    if int(record.value) % 10 == 0:
        return Reject("every tenth is bad")
    return Done(emit={OUT: {"number": int(record.value)}})

@flow.sink(OUT, name="row", table=TABLE, key="number", columns={"number": int}, every="200ms")
def row(found: dict):
    return found
"""
REFUSING_SECONDS = 5.0
RECORDS, FAILURES = 8_000, 80


def failing_pipeline(outcome, handled):
    pipeline = Pipeline("shop", topics=[Topic("orders", 4)])

    @pipeline.stage("orders", name="work", retry=["1s"], concurrency=8)
    def work(record, context):
        if int(record.value) % (RECORDS // FAILURES) == 0 and context.attempt == 1:
            return outcome
        handled.append(record.value)
        return None

    return pipeline


def memory_site(broker):
    def nobody(*_):
        raise AssertionError("neither sinks nor files are here")

    return Site(broker, SystemClock(), silent, open_sink=nobody, open_letter_file=nobody)


@pytest.mark.parametrize(
    ("refused", "outcome"),
    [("shop-work.dlq", Reject("bad")), ("shop-work.retry.1s", Retry("not now"))],
)
def test_a_topic_that_refuses_failures_holds_them_and_loses_none(refused, outcome):
    handled = []
    pipeline = failing_pipeline(outcome, handled)
    broker = MemoryBroker()
    create_topics(broker.admin(), plan_topics(pipeline), foreign_too=True)
    producer = broker.producer()
    for number in range(RECORDS):
        producer.send(Record(b"%d" % number, topic="orders"))
    assert len(producer.close()) == RECORDS
    broker.refuse_writes(refused)
    run = PipelineRun(pipeline, memory_site(broker), part="records")
    run.start()
    eventually(lambda: len(handled) == RECORDS - FAILURES)
    time.sleep(REFUSING_SECONDS)
    told = vitals(run.health())
    (stage,) = (one for one in told.body["stages"] if one["stage"] == "work")
    assert (told.is_live, told.is_ready) == (True, False)
    assert stage["unresolved"] >= FAILURES
    assert any(refused in reason for reason in stage["reasons"])
    broker.accept_writes(refused)
    eventually(lambda: vitals(run.health()).is_ready and run.is_idle, within_seconds=20)
    eventually(lambda: committed(broker) >= RECORDS, within_seconds=20)
    run.stop()
    while not run.wait():
        pass
    assert run.close().left_behind == 0
    lost = RECORDS - len(set(handled)) - len(letters(broker))
    assert (lost, len(handled) + len(letters(broker))) == (0, RECORDS)


def committed(broker):
    positions = broker.admin().describe_group("shop-work").positions
    return sum(known.committed.offset for known in positions if known.committed)


def letters(broker):
    at = TopicPartition("shop-work.dlq", 0)
    (marks,) = broker.admin().watermarks([at]).values()
    consumer = broker.consumer(None)
    consumer.assign({at: 0})
    found = []
    while consumer.position(at) < marks.end:
        found += [record.value for record in consumer.poll(0.1)]
    return set(found)


def answer(url):
    """Status and body."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - on loopback
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())


def health_of(running):
    def find():
        lines = [line for line in running.said.splitlines() if line.startswith("health http")]
        return lines and lines[0].split()[1].removesuffix("/health")

    return eventually(find)


@pytest.mark.parametrize("command", [("run",), ("worker", "work")])
def test_a_dead_letter_topic_that_is_gone_makes_the_stage_unready_until_it_is_back(place, command):
    place.declare(FAILING)
    place.create_topics()
    url = health_of(running := place.start(*command, "--json"))
    eventually(lambda: answer(f"{url}/health/ready")[0] == 200)
    letters_topic = f"{place.name}-work.dlq"
    place.broker.admin().delete_topic(letters_topic)
    place.produce(b"%d" % number for number in range(400))
    place.wait_for_notes(396)
    status, body = eventually(lambda: unready(url))
    reasons = [reason for stage in body["stages"] for reason in stage["reasons"]]
    assert any(letters_topic in reason for reason in reasons)
    assert status == 503
    assert answer(f"{url}/health/live") == (200, {"live": True})
    assert answer(f"{url}/health")[0] == answer(f"{url}/ready")[0] == 503
    assert sum(place.committed().values()) < 400
    place.broker.admin().create_topic(TopicSpec(letters_topic, 1))
    eventually(lambda: len(place.letters()) == 4, within_seconds=20)
    eventually(lambda: answer(f"{url}/health/ready")[0] == 200, within_seconds=20)
    eventually(lambda: sum(place.committed().values()) == 400, within_seconds=20)
    assert running.terminate().code == 0
    assert {int(letter.value) for letter in place.letters()} == {0, 100, 200, 300}


def unready(url):
    status, body = answer(f"{url}/health/ready")
    return (status, body) if status == 503 else None


@contextmanager
def locked(path):
    """Another program keeps it for itself."""
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


def rows_of(place):
    return sorted(column_of(place.folder / "rows.db", "SELECT number FROM rows"))


def ledger(place):
    return sorted(int(value) for value in place.ledger("record_value"))


def test_a_locked_table_and_ledger_hold_their_sinks_and_nothing_else(embedded_place):
    place = embedded_place
    table = place.folder / "rows.db"
    place.declare(f'TABLE = "sqlite:///{table}?table=rows"\n' + STORED)
    place.create_topics()
    url = health_of(running := place.start("run", "--json"))
    place.produce(b"%d" % number for number in range(20))
    eventually(lambda: len(rows_of(place)) == 18, within_seconds=20)
    eventually(lambda: len(ledger(place)) == 2, within_seconds=20)
    with locked(table), locked(place.folder / "data" / "state.db"):
        place.produce(b"%d" % number for number in range(20, 400))
        place.wait_for_notes(400)
        eventually(lambda: sum(place.committed().values()) == 400, within_seconds=10)
        eventually(lambda: held(url) >= {"row", "dlq-handler"}, within_seconds=20)
        assert answer(f"{url}/health/ready")[0] == 503
        assert len(rows_of(place)) == 18
    eventually(lambda: answer(f"{url}/health/ready")[0] == 200, within_seconds=20)
    eventually(lambda: len(rows_of(place)) == 360, within_seconds=20)
    eventually(lambda: len(ledger(place)) == 40, within_seconds=20)
    assert running.terminate().code == 0
    assert place.notes == {str(number): 1 for number in range(400)}
    assert ledger(place) == list(range(0, 400, 10))


def held(url):
    """Stages that say why they do not work."""
    _, body = answer(f"{url}/health")
    return {stage["stage"] for stage in body["stages"] if stage["reasons"]}


def test_a_ledger_that_cannot_be_opened_at_the_start_holds_no_record_stage(embedded_place):
    place = embedded_place
    table = place.folder / "rows.db"
    place.declare(f'TABLE = "sqlite:///{table}?table=rows"\n' + STORED)
    place.create_topics()
    place.produce(b"%d" % number for number in range(100))
    state = place.folder / "data" / "state.db"
    state.mkdir()
    running = place.start("run", "--json", "--log-level", "info")
    eventually(lambda: sum(place.committed().values()) == 100, within_seconds=20)
    assert running.process.poll() is None
    eventually(lambda: "state.db" in running.said, within_seconds=10)
    url = health_of(running)
    assert [answer(f"{url}/health/ready")[0] for _ in range(200)] == [503] * 200
    state.rmdir()
    eventually(lambda: len(ledger(place)) == 10, within_seconds=30)
    eventually(lambda: len(rows_of(place)) == 90, within_seconds=30)
    assert running.terminate().code == 0
    assert read_envelope(place.letters()[0]) is not None
