"""forebay.yaml, the variables and the flags, as commands and their children see them."""

import re

import pytest

ORDERS = """
from forebay import Pipeline

orders = Pipeline("orders")

@orders.stage("orders")
def charge(order: dict):
    return None
"""


@pytest.fixture
def settled(forebay):
    """A command line with a file of settings that it has to be told of."""
    (forebay.folder / "orders.py").write_text(ORDERS)
    (forebay.folder / "other.yaml").write_text("dir: elsewhere\nevent_source: eventhub\n")
    return forebay


def test_children_of_a_run_read_the_file_that_the_run_was_told_of(settled):
    settled("topics", "create", "orders", "--config", "other.yaml")
    settled("topics", "produce", "orders", "--config", "other.yaml", say='{"n": 1}\n')
    command = ("run", "orders:orders", "--until", "idle", "--json", "--config", "other.yaml")
    answer = settled(*command)
    assert (answer.code, answer.object["handled"]) == (0, 1)
    assert not (settled.folder / "forebay-data").exists()
    assert answer.err.count("not used by this version: other.yaml:event_source") == 1


def test_the_file_in_the_folder_is_read_unasked_and_a_variable_names_another(settled):
    (settled.folder / "forebay.yaml").write_text("dir: here")
    assert settled("doctor", "--config", "--json").items == [
        {"key": "dir", "value": "here", "from": "forebay.yaml:dir"}
    ]
    answer = settled("doctor", "--config", "--json", environment={"FOREBAY_CONFIG": "other.yaml"})
    assert [item["value"] for item in answer.items] == ["elsewhere"]
    assert answer.object["unused"] == ["other.yaml:event_source"]


def test_doctor_shows_who_said_what_and_no_secret(settled):
    environment = {"KAFKA_SASL_PLAIN_PASSWORD": "771177", "RETRY_DELAYS": "1,2"}
    command = ("doctor", "--config", "other.yaml", "--log-level", "info")
    answer = settled(*command, environment=environment)
    cells = [re.split(" {2,}", line) for line in answer.out.splitlines()]
    assert ["dir", "elsewhere", "other.yaml:dir"] in cells
    assert ["kafka.xact.retry_delays", "1, 2", "RETRY_DELAYS"] in cells
    assert ["logging.level", "info", "--log-level"] in cells
    assert ["kafka.connection.sasl_plain_password", "***", "KAFKA_SASL_PLAIN_PASSWORD"] in cells
    assert "771177" not in answer.out + answer.err


def test_doctor_without_a_word_says_that_all_is_default(forebay):
    assert forebay("doctor", "--config").out == "Everything is as it is by default.\n"
    assert forebay("doctor", "--config", "--json").object == {"items": [], "total": 0, "unused": []}


def test_every_problem_ends_a_command_before_it_begins(forebay):
    (forebay.folder / "forebay.yaml").write_text("{kafkaa: 1, logging: {level: loud}}")
    answer = forebay("topics", "list")
    assert answer.code == 2
    assert "2 settings are wrong:" in answer.err
    assert "forebay.yaml:kafkaa is not known; write kafka." in answer.err
    assert not (forebay.folder / "forebay-data").exists()
    doctor = forebay("doctor", "--json")
    assert (doctor.code, doctor.object["ok"]) == (1, False)
