"""The other processes of the embedded rows: `embedded_worker.py ROLE FOLDER ARGUMENTS…`."""

import os
import resource
import struct
import sys
import time
from pathlib import Path

import apsw

from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.embedded.folder import WAL_BYTES
from forebay.broker.settings import EmbeddedSettings
from forebay.core.records import Record, TopicPartition

TOPIC = "bench"
PARTITION = TopicPartition(TOPIC, 0)
PERIOD_SECONDS = 1 / 200
PAYLOAD = b"v" * 500
_TIME = struct.Struct("<q")


class FromStart:
    def __init__(self, consumer) -> None:
        self._consumer = consumer

    def assigned(self, committed) -> None:
        for partition in committed:
            self._consumer.seek(partition, 0)

    def revoked(self, partitions) -> None:
        pass

    lost = revoked


def hop_broker_reader(folder: Path, count: float) -> None:
    broker = EmbeddedBroker(EmbeddedSettings(folder))
    consumer = broker.consumer(None)
    consumer.assign({PARTITION: 0})
    print("ready", flush=True)
    delays: list[float] = []
    while len(delays) < count:
        records = consumer.poll(1.0)
        now = time.monotonic_ns()
        delays += [(now - _TIME.unpack_from(record.value)[0]) / 1e6 for record in records]
    broker.close()
    print(*delays)


def hop_broker_sender(folder: Path, count: float) -> None:
    broker = EmbeddedBroker(EmbeddedSettings(folder))
    producer = broker.producer()
    for _ in _ticks(int(count)):
        value = _TIME.pack(time.monotonic_ns()) + PAYLOAD
        producer.send(Record(value, topic=TOPIC, partition=0))
        producer.poll(1.0)
    broker.close()


def hop_fifo_reader(folder: Path, count: float) -> None:
    path = folder / "bare.fifo"
    os.mkfifo(path)
    print("ready", flush=True)
    delays: list[float] = []
    with path.open("rb", buffering=0) as fifo:
        while len(delays) < count:
            sent = fifo.read(_TIME.size)
            delays.append((time.monotonic_ns() - _TIME.unpack(sent)[0]) / 1e6)
    print(*delays)


def hop_fifo_sender(folder: Path, count: float) -> None:
    """The same fsync as the broker's: a row that SQLite commits to a WAL of its final size."""
    connection = _bare_database(folder / "bare.db")
    with (folder / "bare.fifo").open("wb", buffering=0) as fifo:
        for number in _ticks(int(count)):
            sent = _TIME.pack(time.monotonic_ns())
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO log VALUES (?, ?)", (number, sent + PAYLOAD))
            connection.execute("COMMIT")
            fifo.write(sent)
    connection.close()


def hop_file_sender(folder: Path, count: float) -> None:
    """The least a disk can do: 508 bytes at the end of a file, and fdatasync."""
    log = os.open(folder / "bare.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with (folder / "bare.fifo").open("wb", buffering=0) as fifo:
        for _ in _ticks(int(count)):
            sent = _TIME.pack(time.monotonic_ns())
            os.write(log, sent + PAYLOAD)
            os.fdatasync(log)
            fifo.write(sent)
    os.close(log)


def _bare_database(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for pragma in ("page_size=8192", "journal_mode=wal", "synchronous=full"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, value BLOB) STRICT")
    with Path(f"{path}-wal").open("r+b") as wal:
        wal.seek(0, os.SEEK_END)
        wal.write(bytes(WAL_BYTES - wal.tell()))
        os.fsync(wal.fileno())
    return connection


hop_file_reader = hop_fifo_reader


def _ticks(count: int):
    due = time.monotonic()
    for number in range(count):
        due += PERIOD_SECONDS
        time.sleep(max(0.0, due - time.monotonic()))
        yield number


def wait(folder: Path, seconds: float) -> None:
    broker = EmbeddedBroker(EmbeddedSettings(folder))
    consumer = broker.consumer("waiting")
    consumer.subscribe([TOPIC], FromStart(consumer))
    consumer.poll(0.5)
    started, used = time.monotonic(), _cpu_seconds()
    while time.monotonic() - started < seconds:
        assert consumer.poll(1.0) == []
    print(100 * (_cpu_seconds() - used) / (time.monotonic() - started))
    broker.close()


def produce(folder: Path, start_at: float, seconds: float) -> None:
    broker = EmbeddedBroker(EmbeddedSettings(folder))
    producer = broker.producer()
    batch = [Record(PAYLOAD, topic=TOPIC, partition=at % 4) for at in range(100)]
    producer.send_many(batch)
    producer.flush(10)
    producer.poll(0)
    time.sleep(max(0.0, start_at - time.monotonic()))
    stored = 0
    while time.monotonic() < start_at + seconds:
        producer.send_many(batch)
        while producer.outstanding > 100:
            stored += len(producer.poll(1.0))
    broker.close()
    print(stored)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    role, folder, *arguments = sys.argv[1:]
    globals()[role](Path(folder), *map(float, arguments))
