"""Both files are rotated under a running consumer, as its document says: rows stay whole."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from forebay.bootstrap import connect
from forebay.core.records import Record
from forebay.core.topics import TopicSpec
from forebay.engine.letter_file import read_letters
from forebay.mods.kafka_consumer.replay import Backup
from forebay.testing.waiting import eventually
from scenarios.mod.rotation import BY_RENAMING, DOCUMENTED, installed_logrotate

ROUNDS = 4
A_ROUND = 50

# What the timer of the machine does: it rotates whenever it likes, not between two batches.
CONSUMER = """
import sys
from forebay import run_mod

def process(value):
    if int(value) % 2:
        raise ValueError('odd, "quoted"\\n')

result = run_mod("kafka_consumer", {
    "bootstrap_servers": sys.argv[1],
    "topics": ["orders"],
    "group_id": "rotated",
    "processor_callable": process,
    "auto_offset_reset": "earliest",
    "worker_count": 4,
    "csv_flush_interval_seconds": 1,
    "backup_path": "kafka_backup.csv",
    "dlq_path": "kafka_dlq.csv",
})
print(result["metrics"])
"""


@pytest.fixture
def logrotate(tmp_path):
    return installed_logrotate(tmp_path)


@pytest.fixture
def broker(tmp_path):
    broker = connect(f"embedded:{tmp_path / 'data'}")
    broker.admin().create_topic(TopicSpec("orders", partitions=2))
    yield broker
    broker.close()


@contextmanager
def running_consumer(folder):
    with (folder / "log").open("wb") as log:
        consumer = subprocess.Popen(
            [sys.executable, "-c", CONSUMER, f"embedded:///{folder / 'data'}"],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield
        consumer.terminate()
        assert consumer.wait(60) == 0, (folder / "log").read_text()
    finally:
        consumer.kill()
        consumer.wait()


def produce(broker, numbers):
    producer = broker.producer()
    for number in numbers:
        producer.send(Record(b"%d" % number, b"k", topic="orders", partition=number % 2))
    assert [report.error for report in producer.close(30) if report.error] == []


def backed_up(folder):
    backup = Backup(sorted(folder.glob("kafka_backup.csv*")))
    values = sorted(int(record.value) for record in backup.records())
    assert backup.unreadable == 0
    return values


def dead(folder):
    found = [read_letters(path) for path in folder.glob("kafka_dlq.csv*")]
    assert [read.unreadable for read in found] == [0] * len(found)
    return sorted(int(letter.record.value) for read in found for letter in read.letters)


def test_the_documented_logrotate_example_keeps_every_row_of_the_backup(
    logrotate, broker, tmp_path
):
    """copytruncate loses what is written while it copies; so each round is written before it."""
    backup = tmp_path / "kafka_backup.csv"
    with running_consumer(tmp_path):
        for round_ in range(ROUNDS):
            produce(broker, range(round_ * A_ROUND, (round_ + 1) * A_ROUND))
            eventually(lambda end=(round_ + 1) * A_ROUND: backed_up(tmp_path) == [*range(end)])
            logrotate.rotate(DOCUMENTED, backup)
            assert backup.stat().st_size == 0
        produce(broker, [ROUNDS * A_ROUND])
        eventually(lambda: backed_up(tmp_path) == [*range(ROUNDS * A_ROUND + 1)])
    assert backed_up(tmp_path) == [*range(ROUNDS * A_ROUND + 1)]
    names = {path.name.removeprefix(backup.name) for path in tmp_path.glob("kafka_backup.csv*")}
    assert names == {"", ".1", ".2.gz", ".3.gz", ".4.gz"}
    for path in (backup, tmp_path / "kafka_backup.csv.1"):
        assert path.read_bytes().startswith(b"timestamp,topic,"), path
        assert b"\0" not in path.read_bytes()


def test_both_files_are_rotated_by_renaming_at_any_moment_without_a_lost_or_doubled_row(
    logrotate, broker, tmp_path
):
    backup, letters = tmp_path / "kafka_backup.csv", tmp_path / "kafka_dlq.csv"
    with running_consumer(tmp_path):
        for round_ in range(ROUNDS):
            produce(broker, range(round_ * A_ROUND, (round_ + 1) * A_ROUND))
            eventually(lambda: letters.exists() and backup.exists())
            logrotate.rotate(BY_RENAMING, backup)
            logrotate.rotate(BY_RENAMING, letters)
        eventually(lambda: len(backed_up(tmp_path)) == ROUNDS * A_ROUND)
        eventually(lambda: len(dead(tmp_path)) == ROUNDS * A_ROUND // 2)
    assert backed_up(tmp_path) == [*range(ROUNDS * A_ROUND)]
    assert dead(tmp_path) == [*range(1, ROUNDS * A_ROUND, 2)]
    assert len(list(tmp_path.glob("kafka_dlq.csv*"))) > 1
    assert len(list(tmp_path.glob("kafka_backup.csv*"))) > 1


CRON = """
set -e
cp "$1" temp.csv
> "$1"
gzip -c temp.csv > "$1.$2.gz"
rm temp.csv
"""


def test_the_documented_cron_script_keeps_every_row_of_the_backup(broker, tmp_path):
    backup = tmp_path / "kafka_backup.csv"
    with running_consumer(tmp_path):
        for round_ in range(ROUNDS):
            produce(broker, range(round_ * A_ROUND, (round_ + 1) * A_ROUND))
            eventually(lambda end=(round_ + 1) * A_ROUND: backed_up(tmp_path) == [*range(end)])
            command = ["bash", "-c", CRON, "rotate", str(backup), str(round_)]
            subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    assert backed_up(tmp_path) == [*range(ROUNDS * A_ROUND)]
    assert len(list(tmp_path.glob("*.gz"))) == ROUNDS
