import os
import signal
import subprocess
import sys
import threading

import pytest

from forebay.broker.kafka import jars
from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.trial import TrialCluster, missing
from forebay.broker.settings import KafkaSettings
from forebay.core.errors import Unavailable, Unusable
from forebay.observability.catalogue import silent
from forebay.testing.waiting import eventually

START = [sys.executable, "-m", "forebay.broker.kafka.trial"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def brokers_of(pid: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in listed.stdout.split()]


@pytest.fixture
def started(kafka, tmp_path):
    """The command of `make kafka`; the shared cluster has filled the cache."""
    trial = subprocess.Popen(
        START, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    yield trial
    trial.kill()
    trial.wait()
    trial.stdout.close()


def read_until_it_serves(trial) -> str:
    for line in trial.stdout:
        if "forebay topics list --broker kafka://" in line:
            return line.rsplit("kafka://", 1)[1].strip()
    raise AssertionError("it never served")


def test_the_command_serves_until_it_is_told_to_end_and_leaves_nothing(started, tmp_path):
    address = read_until_it_serves(started)
    broker = KafkaBroker(KafkaSettings(address), silent)
    assert broker.describe().sentence == f"kafka {address} (1 node)"
    children = brokers_of(started.pid)
    started.send_signal(signal.SIGTERM)
    assert started.wait(20) == 0
    assert [pid for pid in children if is_alive(pid)] == []
    assert list(tmp_path.iterdir()) == []


def test_a_broker_ends_with_a_parent_that_was_killed(started):
    read_until_it_serves(started)
    children = brokers_of(started.pid)
    assert children
    started.kill()
    eventually(lambda: not any(is_alive(pid) for pid in children))


def test_a_node_is_not_started_from_a_thread_that_would_take_it_along_when_it_ends(kafka):
    told = []

    def start():
        try:
            kafka.nodes[0].start()
        except Unusable as error:
            told.append(str(error))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "from the main thread" in told[0]


def test_jars_that_are_not_those_of_the_lock_are_named_and_not_used(tmp_path):
    (tmp_path / "kafka-clients-4.3.1.jar").write_bytes(b"something else")
    with pytest.raises(Unusable, match=r"kafka-clients-4.3.1.jar.*Nothing of them is used"):
        jars._compare(tmp_path)


def test_without_java_or_maven_it_is_said_what_to_install(monkeypatch, tmp_path):
    assert missing() is None
    monkeypatch.setenv("FOREBAY_KAFKA_CACHE", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Unusable, match=r"no Java found.*apt-get install"):
        TrialCluster().start()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    assert "Java 11 is too old" in (missing() or "")
    java.write_text("#!/bin/sh\necho 'openjdk version \"21\" 2023-09-19' >&2\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no Maven found" in (missing() or "")


def test_a_broker_that_is_not_there_is_unavailable_within_seconds(kafka):
    gone = kafka.nodes[0].controller_port
    broker = KafkaBroker(KafkaSettings("127.0.0.1:9"), silent)
    assert gone != 9
    with pytest.raises(Unavailable, match="does not answer"):
        broker.admin().list_groups()
    (finding, _) = broker.diagnose()
    assert not finding.ok
    assert broker.describe().sentence == "kafka 127.0.0.1:9 (not reachable now)"
