"""What a caller of `run_mod` meets: its result, its log, its threads."""

import json
import threading
from pathlib import Path

import pytest

from forebay import run_mod
from forebay.bootstrap import connect
from forebay.core.records import Record
from forebay.core.topics import TopicSpec
from forebay.mods import kafka_consumer
from forebay.mods.registry import listed_mods

METRICS = {"processed", "failed", "backed_up", "backup_dropped", "committed", "seconds"}


@pytest.fixture
def params(tmp_path):
    """Of a run over the embedded broker that ends by itself after ten messages."""
    url = f"embedded://{tmp_path}/data"
    broker = connect(url)
    broker.admin().create_topic(TopicSpec("orders"))
    producer = broker.producer()
    for number in range(10):
        producer.send(Record(b"%d" % number, topic="orders"))
    producer.close()
    broker.close()
    return {
        "bootstrap_servers": url,
        "topics": ["orders"],
        "group_id": "g",
        "processor_callable": int,
        "auto_offset_reset": "earliest",
        "stop_at_offset": {("orders", 0): 10},
        "backup_path": str(tmp_path / "backup.csv"),
        "dlq_path": str(tmp_path / "dlq.csv"),
    }


def log_of(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_the_result_has_the_documented_keys(params, capsys):
    result = run_mod("kafka_consumer", params)
    assert result.keys() == {
        *("status", "exit_code", "metrics", "artifacts", "globals", "warnings", "errors", "logs")
    }
    assert (result["status"], result["exit_code"]) == ("success", 0)
    assert result["metrics"].keys() == METRICS
    assert result["metrics"]["processed"] == result["metrics"]["committed"] == 10
    assert result["logs"].keys() == {"run_id", "mod_type", "mod_name"}
    assert result["artifacts"] == {"backup_path": params["backup_path"]}
    assert all(line["mod_type"] == "kafka_consumer" for line in log_of(capsys))


def test_failures_are_a_warning_with_the_file_they_are_in(params):
    def refuse(value):
        raise ValueError(value)

    result = run_mod("kafka_consumer", params | {"processor_callable": refuse})
    assert (result["status"], result["exit_code"]) == ("warning", 10)
    assert result["artifacts"]["dlq_path"] == params["dlq_path"]
    assert "10 messages failed" in result["warnings"][0]


def test_wrong_parameters_start_nothing_and_are_told_in_the_result(params, tmp_path):
    result = run_mod("kafka_consumer", params | {"worker_count": 0, "typo": 1})
    assert (result["status"], result["exit_code"]) == ("error", 20)
    (error,) = result["errors"]
    assert "worker_count" in error
    assert "typo" in error
    assert result["metrics"].keys() == METRICS
    assert not (tmp_path / "backup.csv").exists()


def test_a_mod_that_there_is_not_is_told_with_those_there_are(params):
    result = run_mod("kafka_producer", params)
    assert result["exit_code"] == 20
    assert "there are: kafka_consumer" in result["errors"][0]


def test_a_mod_name_is_in_log_and_result(params, capsys):
    result = run_mod("kafka_consumer", params, "orders-eu")
    assert result["logs"]["mod_name"] == "orders-eu"
    assert {line["mod_name"] for line in log_of(capsys)} == {"orders-eu"}


def test_off_the_main_thread_it_sets_no_signal_handlers_and_says_so(params, capsys):
    results = []
    stop = threading.Event()
    endless = {name: value for name, value in params.items() if name != "stop_at_offset"}
    thread = threading.Thread(
        target=lambda: results.append(run_mod("kafka_consumer", endless, stop=stop))
    )
    thread.start()
    stop.set()
    thread.join(30)
    assert results[0]["exit_code"] == 0
    said = {line["event"]: line for line in log_of(capsys)}
    assert "mod.no_signal_handlers" in said
    assert said["mod.shutdown_initiated"]["reason"] == "requested"


def test_on_the_embedded_broker_session_settings_are_said_once_to_have_no_effect(params, capsys):
    run_mod(
        "kafka_consumer",
        params | {"session_timeout_ms": 20_000, "isolation_level": "read_committed"},
    )
    (said,) = [line for line in log_of(capsys) if line["event"] == "mod.no_effect"]
    assert said["parameters"] == ["session_timeout_ms", "isolation_level"]


def test_a_framework_runs_the_mod_by_what_the_registry_names(params):
    assert list(listed_mods()) == ["kafka_consumer"]
    injected = params | {"_mod_name": "from-outside", "_mod_type": "kafka_consumer"}
    result = kafka_consumer.run(injected)
    assert (result["exit_code"], result["logs"]["mod_name"]) == (0, "from-outside")


def test_it_keeps_no_state_and_creates_no_topic(params, tmp_path):
    run_mod("kafka_consumer", params)
    assert {path.name for path in Path(tmp_path).iterdir()} == {"data", "backup.csv", "dlq.csv"}
    broker = connect(params["bootstrap_servers"])
    assert [topic.name for topic in broker.admin().describe_topics()] == ["orders"]
    broker.close()
