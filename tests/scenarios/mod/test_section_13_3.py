"""Section 13.3 of the mod's document, by name, on a real Kafka."""

import os
import threading

import pytest

from forebay.bootstrap import connect
from forebay.broker.settings import ProducerSettings
from forebay.core.records import Record
from forebay.testing import eventually
from mod_place import ModPlace


def numbers(count, start=0):
    return [b"%d" % number for number in range(start, start + count)]


def all_committed(mod):
    return sum(mod.committed(partition) or 0 for partition in range(4))


def test_13_3_1_kafka_connection_loss(own_kafka, tmp_path):
    broker = connect(f"kafka://{own_kafka.bootstrap}")
    mod = ModPlace(tmp_path, broker, own_kafka.bootstrap)
    try:
        mod.create(partitions=4)
        mod.produce(numbers(50))
        run = mod.start(commit_interval_seconds=1)
        mod.wait_for(50)
        (node,) = own_kafka.nodes
        node.kill()
        run.wait_for("broker.lost", within_seconds=60)
        assert run.is_alive
        node.start()
        mod.produce(numbers(50, 50))
        eventually(lambda: len(set(mod.processed.values)) == 100, within_seconds=90)
        eventually(lambda: all_committed(mod) == 100, within_seconds=60)
        run.stop()
    finally:
        mod.close()


NOTING = """
def process(value):
    if value.startswith(b"bad"):
        raise ValueError(value.decode())
    note(value.decode())
"""


def on_a_full_disk(folder):
    """In a process that alone sees it: a file system of half a megabyte."""
    mount = f'mount -t tmpfs -o size=512k none {folder} && exec "$@"'
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    return (*alone, "sh", "-c", mount, "sh")


def test_13_3_2_disk_full(mod, processes):
    """The backup gives up its rows and says so; failures are held until there is room again."""
    small = mod.folder / "small"
    small.mkdir()
    processes.declare(
        NOTING.replace(
            "def process(value):",
            'def process(value):\n    if value == b"free":\n'
            '        (HERE / "small" / "filler").unlink()',
        )
        + '\n(HERE / "small" / "filler").write_bytes(b"x" * 400_000)\n'
    )
    mod.produce([b"%d" % number + b"x" * 3_000 for number in range(100)], partition=0)
    run = processes.start(
        wrapper=on_a_full_disk(small),
        backup_path=str(small / "backup.csv"),
        dlq_path=str(small / "letters.csv"),
        csv_flush_interval_seconds=1,
    )
    processes.wait_for_notes(100)
    run.wait_for("backup.failed")
    eventually(lambda: mod.committed(0) == 100, within_seconds=20)
    mod.produce([b"bad" + b"x" * 5_000] * 40, partition=1)
    run.wait_for("mod.dlq_write_failed")
    assert (mod.committed(1) or 0) < 40
    mod.produce([b"free"], partition=2)
    eventually(lambda: mod.committed(1) == 40, within_seconds=40)
    result = run.terminate()
    assert (run.process.returncode, result["metrics"]["failed"]) == (0, 40)


@pytest.mark.parametrize("ends", ["sys.exit(3)", "raise GeneratorExit", "raise Evil"])
def test_13_3_3_worker_thread_crash(mod, processes, ends):
    processes.declare(f"""
class Evil(Exception):
    @property
    def category(self):
        raise RuntimeError("in the worker itself")

def process(value):
    if value == b"3":
        {ends}
    note(value.decode())
""")
    mod.produce(numbers(20))
    run = processes.start(worker_count=1)
    processes.wait_for_notes(19)
    eventually(lambda: all_committed(mod) == 20)
    run.terminate()
    (letter,) = mod.letters
    assert letter.record.value == b"3"


def test_13_3_4_processing_timeout(mod):
    mod.produce([b"slow", *numbers(10)], partition=0)
    release = threading.Event()
    done = []

    def process(value):
        if value == b"slow":
            release.wait(30)
        done.append(value)

    run = mod.start(process, processing_timeout=1, worker_count=2)
    eventually(lambda: len(done) == 10 and mod.letters, within_seconds=30)
    release.set()
    run.stop()
    (letter,) = mod.letters
    assert (letter.record.value, letter.error_type) == (b"slow", "TimeoutError")
    assert mod.committed(0) == 11


def test_13_3_5_out_of_memory(own_large_kafka, tmp_path):
    """A message of more than 100 MB is rejected, and the consumer goes on."""
    broker = connect(f"kafka://{own_large_kafka.bootstrap}")
    mod = ModPlace(tmp_path, broker, own_large_kafka.bootstrap)
    try:
        mod.create()
        mod.produce([b"before"])
        _send_large(own_large_kafka.bootstrap, 101 * 2**20)
        mod.produce([b"after"])
        run = mod.start(backup_enabled=True)
        eventually(lambda: mod.processed.values == [b"before", b"after"], within_seconds=60)
        eventually(lambda: mod.committed(0) == 3, within_seconds=60)
        ended = run.stop()
        (letter,) = mod.letters
        assert (len(letter.record.value), letter.error_type) == (
            101 * 2**20,
            "MessageTooLargeError",
        )
        assert ended.metrics["failed"] == 1
    finally:
        mod.close()


def _send_large(servers, size):
    from forebay.broker.kafka.broker import KafkaBroker
    from forebay.broker.settings import KafkaSettings
    from forebay.observability.catalogue import silent

    broker = KafkaBroker(KafkaSettings(servers, record_bytes_max=size), silent)
    producer = broker.producer(ProducerSettings(pending_bytes_max=2 * size))
    producer.send(Record(b"x" * size, topic="orders"))
    assert [report.error for report in producer.close(60)] == [None]
    broker.close()


def test_13_3_6_dev_mode_restart(mod, processes):
    processes.declare(NOTING)
    mod.produce(numbers(50))
    run = processes.start(dev_mode=True)
    processes.wait_for_notes(50)
    run.kill()
    again = processes.start(dev_mode=True)
    processes.wait_for_notes(100)
    again.terminate()
    assert set(processes.notes.values()) == {2}
    assert all_committed(mod) == 0
