"""The five configurations of section 10.2, with their folders created, on a real Kafka."""

import threading
import uuid
from contextlib import suppress

import pytest
from confluent_kafka import Producer

from forebay import run_mod
from forebay.core.errors import UnknownTopic
from forebay.core.topics import TopicSpec
from forebay.testing import eventually

MINIMAL = {"topics": ["orders"], "group_id": "order-processor"}
PRODUCTION = {
    "topics": ["orders", "payments"],
    "group_id": "order-processor-prod",
    "poll_timeout_ms": 1000,
    "max_poll_records": 100,
    "auto_offset_reset": "earliest",
    "worker_count": 100,
    "queue_size": 500,
    "max_message_size": 5242880,
    "processing_timeout": 30,
    "commit_interval_seconds": 5,
    "dev_mode": False,
    "backup_enabled": True,
    "backup_path": "data/backups/kafka_backup.csv",
    "csv_flush_interval_seconds": 10,
    "dlq_path": "data/dlq/kafka_dlq.csv",
    "shutdown_timeout_seconds": 60,
    "log_level": "INFO",
}
DEVELOPMENT = {
    "topics": ["orders-test"],
    "group_id": "test-consumer",
    "dev_mode": True,
    "stop_at_offset": {("orders-test", 0): 100, ("orders-test", 1): 50},
    "worker_count": 5,
    "queue_size": 20,
    "backup_enabled": True,
    "backup_path": "test_backup.csv",
    "dlq_path": "test_dlq.csv",
    "shutdown_timeout_seconds": 10,
    "log_level": "DEBUG",
}
HIGH_THROUGHPUT = {
    "topics": ["high-volume-topic"],
    "group_id": "high-throughput-consumer",
    "worker_count": 200,
    "queue_size": 1000,
    "max_poll_records": 500,
    "commit_interval_seconds": 10,
    "backup_enabled": False,
    "processing_timeout": None,
    "shutdown_timeout_seconds": 120,
    "dev_mode": False,
}
LOW_LATENCY = {
    "topics": ["realtime-events"],
    "group_id": "realtime-processor",
    "worker_count": 20,
    "queue_size": 50,
    "max_poll_records": 10,
    "commit_interval_seconds": 1,
    "csv_flush_interval_seconds": 1,
    "csv_batch_size": 100,
    "dev_mode": False,
}


@pytest.mark.parametrize(
    "example",
    [MINIMAL, PRODUCTION, DEVELOPMENT, HIGH_THROUGHPUT, LOW_LATENCY],
    ids=["minimal", "production", "development", "high_throughput", "low_latency"],
)
def test_an_example_of_the_document_runs(mod, monkeypatch, example):
    monkeypatch.chdir(mod.folder)
    for folder in ("data/backups", "data/dlq"):
        (mod.folder / folder).mkdir(parents=True)
    for topic in example["topics"]:
        _begin_anew(mod, topic)
    stop, results = threading.Event(), []
    params = {
        "bootstrap_servers": mod.servers,
        "processor_callable": mod.processed,
        **example,
        "group_id": f"{example['group_id']}-{uuid.uuid4().hex[:6]}",
    }
    thread = threading.Thread(
        target=lambda: results.append(run_mod("kafka_consumer", params, stop=stop))
    )
    thread.start()
    if "auto_offset_reset" not in example and not example.get("dev_mode"):
        eventually(lambda: mod.committed(0, example["topics"][0], params["group_id"]) == 0)
    for topic in example["topics"]:
        for partition in (0, 1):
            mod.produce([b"%d" % number for number in range(20)], topic, partition=partition)
    if example.get("dev_mode"):
        stop.set()  # it begins at the end of each log, whose messages it does not read
    else:
        mod.wait_for(40 * len(example["topics"]))
        stop.set()
    thread.join(60)
    assert results[0]["exit_code"] == 0, results


def _begin_anew(mod, topic):
    with suppress(UnknownTopic):
        mod.broker.admin().delete_topic(topic)
    eventually(lambda: _made(mod, topic))


def _made(mod, topic):
    mod.broker.admin().create_topic(TopicSpec(topic, 2), exists_ok=True)
    return topic in {found.name for found in mod.broker.admin().describe_topics()}


@pytest.mark.parametrize(
    ("level", "expected"),
    [("read_committed", [b"kept"]), ("read_uncommitted", [b"aborted", b"kept"])],
)
def test_isolation_level_decides_about_messages_of_aborted_transactions(mod, level, expected):
    producer = Producer(
        {"bootstrap.servers": mod.servers, "transactional.id": uuid.uuid4().hex, "log_level": 0}
    )
    producer.init_transactions(30)
    for value, ends in ((b"aborted", producer.abort_transaction), (b"kept", None)):
        producer.begin_transaction()
        producer.produce(mod.topic, value, partition=0)
        producer.flush(30)
        (ends or producer.commit_transaction)(30)
    run = mod.start(isolation_level=level)
    mod.wait_for(len(expected))
    run.stop()
    assert sorted(mod.processed.values) == expected
