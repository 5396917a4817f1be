"""forebay mod list, describe and run."""

import json

import pytest
from typer.testing import CliRunner

from forebay.bootstrap import connect
from forebay.cli.main import _app
from forebay.core.records import Record
from forebay.core.topics import TopicSpec


def run(*words):
    return CliRunner().invoke(_app(), ["mod", *words])


def last_object(result):
    return json.loads(result.stdout.splitlines()[-1])


def test_list_names_the_mods():
    told = last_object(run("list", "--json"))
    assert told["items"] == [{"mod": "kafka_consumer", "version": "1.1.0", "category": "source"}]


def test_describe_lists_every_parameter():
    told = last_object(run("describe", "kafka_consumer", "--json"))
    assert (told["mod"], told["version"]) == ("kafka_consumer", "1.1.0")
    workers = {parameter["name"]: parameter for parameter in told["parameters"]}["worker_count"]
    assert (workers["type"], workers["required"], workers["default"]) == ("int", False, 50)
    assert (workers["min"], workers["max"]) == (1, 1000)


def test_a_mod_that_there_is_not_is_wrong_use():
    result = run("describe", "kafka_producer")
    assert result.exit_code == 2
    assert "there are: kafka_consumer" in result.stderr


@pytest.fixture
def config(tmp_path):
    url = f"embedded://{tmp_path}/data"
    broker = connect(url)
    broker.admin().create_topic(TopicSpec("orders"))
    producer = broker.producer()
    for number in range(3):
        producer.send(Record(b"%d" % number, topic="orders"))
    producer.close()
    broker.close()
    path = tmp_path / "consumer.yaml"
    path.write_text(f"""
bootstrap_servers: {url}
topics: [orders]
group_id: g
auto_offset_reset: earliest
backup_path: {tmp_path}/backup.csv
dlq_path: {tmp_path}/dlq.csv
stop_at_offset:
  "orders:0": 3
""")
    return path


def test_run_reads_its_parameters_from_a_file_and_its_processor_from_a_module(config):
    result = run("run", "kafka_consumer", "--config", str(config), "--processor", "json:loads")
    assert result.exit_code == 0, result.stderr
    assert "3 processed" in result.stdout


def test_a_run_with_warnings_is_done_and_tells_the_exact_code(config):
    given = ("--config", str(config), "--processor", "uuid:UUID", "--json")
    result = run("run", "kafka_consumer", *given)
    assert (result.exit_code, last_object(result)["exit_code"]) == (0, 10)
    assert "3 messages failed" in result.stderr


def test_wrong_parameters_are_wrong_use(config):
    config.write_text(config.read_text() + "worker_cuont: 3\n")
    result = run("run", "kafka_consumer", "--config", str(config), "--processor", "json:loads")
    assert result.exit_code == 2
    assert "write worker_count" in result.stderr


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "\tx"])
def test_a_file_that_holds_no_parameters_is_wrong_use(config, text):
    config.write_text(text)
    result = run("run", "kafka_consumer", "--config", str(config))
    assert result.exit_code == 2
    assert str(config) in result.stderr


def test_tab_format_has_seven_columns(config):
    given = ("--config", str(config), "--processor", "json:loads", "--log-format", "tab")
    lines = run("run", "kafka_consumer", *given).stderr.splitlines()
    assert lines
    assert {len(line.split("\t")) for line in lines} == {7}
    assert {line.split("\t")[4] for line in lines} == {"kafka_consumer"}
