"""SQLite's locks belong to the process and are lost without a word; ours must not be."""

import os
import subprocess
import sys

import pytest

from forebay.broker.embedded import folder as folder_module
from forebay.core.errors import Damaged
from forebay.core.records import Record
from forebay.core.topics import TopicSpec

# Debian's SQLite 3.40, as a database browser has it; 3.54 itself leaves the WAL in place.
OPEN_AND_CLOSE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT * FROM topic").fetchall()
connection.close()
"""
READ = """
import sys
from pathlib import Path
from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.records import TopicPartition
broker = EmbeddedBroker(EmbeddedSettings(Path(sys.argv[1])))
print(broker.admin().watermarks([TopicPartition("orders", 0)])[TopicPartition("orders", 0)].end)
broker.close()
"""


def run(story: str, argument) -> str:
    done = subprocess.run(
        [sys.executable, "-c", story, str(argument)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return done.stdout.strip() + done.stderr[-200:]


def stored_after_a_plain_open(broker, folder, topic, send) -> str:
    """Read the file as any tool would, let another program open and close it, then go on."""
    send(broker, topic, [b"before"])
    (folder / "broker.db").read_bytes()
    run(OPEN_AND_CLOSE, folder / "broker.db")
    send(broker, topic, [b"after"] * 9)
    return run(READ, folder)


def test_a_plain_open_of_the_file_in_this_process_loses_nothing(broker, folder, topic, send):
    assert stored_after_a_plain_open(broker, folder, topic, send) == "10"


def test_without_the_guards_the_deleted_wal_is_noticed_at_the_next_write(
    open_broker, folder, monkeypatch
):
    """The planted fault: the test above would fail, and even then nothing lost is acknowledged."""
    monkeypatch.setattr(folder_module, "_keep_wal", lambda connection: None)
    monkeypatch.setattr("forebay.broker.embedded.broker.LockGuard", NoGuard)
    broker = open_broker()
    broker.admin().create_topic(TopicSpec("orders"))
    monkeypatch.undo()
    (folder / "broker.db").read_bytes()
    run(OPEN_AND_CLOSE, folder / "broker.db")
    producer = broker.producer()
    producer.send(Record(b"after", topic="orders"))
    producer.flush(5)
    (report,) = producer.poll(0)
    assert isinstance(report.error, Damaged)
    assert "was deleted while the broker was open" in str(report.error)
    with pytest.raises(Damaged):
        producer.send(Record(b"more", topic="orders"))


class NoGuard:
    def __init__(self, path) -> None:
        pass

    def close(self) -> None:
        pass


def test_the_kernel_lists_the_guards_lock(broker):
    locks = next(finding for finding in broker.diagnose() if finding.check == "locks")
    assert locks.ok


FORK = """
import os, sys
from pathlib import Path
from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import Unusable
from forebay.core.records import Record

broker = EmbeddedBroker(EmbeddedSettings(Path(sys.argv[1])))
producer, consumer, admin = broker.producer(), broker.consumer("group"), broker.admin()
uses = [
    lambda: producer.send(Record(b"x", topic="orders")),
    lambda: consumer.poll(0),
    admin.describe_topics,
    broker.producer,
    broker.close,
]
child = os.fork()
if child == 0:
    refused = 0
    for use in uses:
        try:
            use()
        except Unusable as error:
            refused += "came here by fork" in str(error)
    os._exit(refused)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_broker_that_came_through_a_fork_refuses_everything(folder):
    assert run(FORK, folder) == "5"


def test_a_child_of_a_killed_process_does_not_keep_its_member_alive(tmp_path):
    from forebay.broker.embedded.liveness import SignOfLife, is_dead

    sign = SignOfLife(tmp_path, "member", now=100.0)
    assert not is_dead(sign.path, session_seconds=10, now=105.0)
    assert is_dead(sign.path, session_seconds=10, now=111.0)
    sign.forget()
    assert is_dead(sign.path, session_seconds=10, now=105.0)


def test_a_beat_after_the_end_does_not_write_into_the_file_that_got_its_number(tmp_path):
    from forebay.broker.embedded.liveness import SignOfLife

    sign = SignOfLife(tmp_path, "member", now=100.0)
    sign.end()
    innocent = tmp_path / "innocent"
    innocent.write_bytes(b"untouched")
    descriptors = [os.open(innocent, os.O_RDWR) for _ in range(64)]
    sign.beat(now=101.0)
    for descriptor in descriptors:
        os.close(descriptor)
    assert innocent.read_bytes() == b"untouched"
