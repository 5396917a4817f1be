"""The log queries of docs/howto/mod-log-queries.md, run on the log of a real run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apt_tools import missing
from forebay.bootstrap import connect
from forebay.core.records import Record
from forebay.core.topics import TopicSpec

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "mod-log-queries.md"
FENCE = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
MESSAGES = 40
MAX_SIZE = 1_024

# Four time out, four raise something that tries to break the lines, three are slow, one too large.
CONSUMER = """
import sys, time
from forebay import run_mod

def process(value):
    number = int(value.split()[0])
    if number % 10 == 1:
        raise TimeoutError("Message processed successfully\\tin\\nanother life")
    if number % 10 == 2:
        raise ValueError('"quotes"\\\\backslash')
    if number in (5, 15, 25):
        time.sleep(0.3)

run_mod("kafka_consumer", {
    "bootstrap_servers": sys.argv[1],
    "topics": ["orders"],
    "group_id": "logged",
    "processor_callable": process,
    "auto_offset_reset": "earliest",
    "max_message_size": 1024,
    "max_poll_records": 7,
    "worker_count": 4,
    "stop_at_offset": {"orders:0": 40},
    "dev_mode": sys.argv[2] == "dev",
    "csv_flush_interval_seconds": 1,
    "log_level": "DEBUG",
})
"""


def run_consumer(folder, mode, log_format):
    log = folder / f"{mode}.{log_format}.log"
    with log.open("wb") as stderr:
        subprocess.run(
            [sys.executable, "-c", CONSUMER, f"embedded:///{folder / 'data'}", mode],
            cwd=folder,
            env=os.environ | {"LOG_FORMAT": log_format},
            stderr=stderr,
            check=True,
            timeout=90,
        )
    return log


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if complaint := missing():
        pytest.skip(f"needs other programs: {complaint}")
    folder = tmp_path_factory.mktemp("logged")
    broker = connect(f"embedded:{folder / 'data'}")
    broker.admin().create_topic(TopicSpec("orders", partitions=1))
    producer = broker.producer()
    for number in range(MESSAGES):
        padding = b" " * (MAX_SIZE if number == 39 else 0)
        producer.send(Record(b"%d" % number + padding, topic="orders"))
    producer.close(30)
    broker.close()
    run_consumer(folder, "dev", "json")
    run_consumer(folder, "dev", "tab")
    run_consumer(folder, "normal", "tab").rename(folder / "consumer.log")
    return folder


def query(title, number=0):
    """What the page says under a heading, in its n-th block."""
    _, _, section = PAGE.read_text().partition(f"## {title}\n")
    section, _, _ = section.partition("\n## ")
    return FENCE.findall(section)[number]


def answer(folder, question):
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail\n{question}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_every_line_has_the_seven_columns(folder):
    for line in (folder / "consumer.log").read_text().splitlines():
        columns = line.split("\t")
        assert len(columns) == 7, line
        assert columns[3:5] == ["kafka_consumer", "kafka_consumer"], line
        assert isinstance(json.loads(columns[6]), dict)


def test_slow_messages(folder):
    asked = query("1. Slow messages").replace("10000", "290")
    slow = [json.loads(line) for line in answer(folder, asked)]
    assert sorted(found["offset"] for found in slow) == [5, 15, 25]
    assert all(found["time"] >= 290 for found in slow)


@pytest.mark.parametrize(("number", "at", "total"), [(0, 1, MESSAGES), (1, 0, 31)])
def test_throughput(folder, number, at, total):
    lines = [line.split() for line in answer(folder, query("2. Throughput", number))]
    assert sum(int(line[at]) for line in lines) == total
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", line[1 - at]) for line in lines)


def test_the_99th_percentile_of_the_runbook_about_lag(folder):
    (asked,) = FENCE.findall(PAGE.with_name("mod-lag-grows.md").read_text())
    (milliseconds,) = answer(folder, asked)
    assert 290 <= float(milliseconds) < 5_000


def test_what_became_of_one_message_of_the_runbook_about_missing_data(folder):
    (asked,) = FENCE.findall(PAGE.with_name("mod-committed-but-missing.md").read_text())
    (line,) = answer(
        folder, asked.replace('"partition":1,"offset":3,', '"partition":0,"offset":3,')
    )
    assert line.startswith("Message processed successfully\t")


def test_error_rate(folder):
    assert answer(folder, query("3. Error rate")) == ["22.50"]


def test_top_error_types(folder):
    told = [line.split() for line in answer(folder, query("4. Top error types"))]
    assert sorted(told) == [["4", "TimeoutError"], ["4", "ValueError"]]


def test_whether_it_is_in_dev_mode(folder):
    asked = query("5. Is it in dev mode?")
    assert len(answer(folder, asked.replace("consumer.log", "dev.tab.log"))) == 1
    assert answer(folder, f"{asked.strip()} || true") == []


def test_the_json_format_needs_jq_alone(folder):
    (asked,) = re.findall(r"`(jq [^`]*consumer\.log)`", PAGE.read_text())
    told = answer(folder, asked.replace("consumer.log", "dev.json.log"))
    assert sorted(told) == ['"TimeoutError"'] * 4 + ['"ValueError"'] * 4


def test_a_column_is_asked_for_where_words_may_stand_in_a_field(folder):
    (asked,) = re.findall(r"`(awk -F'\\t' [^`]*consumer\.log)`", PAGE.read_text())
    assert len(answer(folder, asked)) == 8
