"""The embedded broker beside bare SQLite and a bare FIFO, in the same run on the same disk."""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import apsw

from benchmarks.results import Row, Target, in_turn
from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.embedded.schema import OFFSET_BITS, OFFSET_MASK
from forebay.broker.settings import EmbeddedSettings
from forebay.core.records import Record, TopicPartition, pack_headers
from forebay.core.topics import TopicSpec

TOPIC = "bench"
PARTITIONS = 4
HEADERS = [("trace", b"t" * 16), ("source", b"s" * 16)]
VALUE, KEY = b"v" * 500, b"k" * 16
WORKER = Path(__file__).with_name("embedded_worker.py")

PRODUCE_BATCHES = 100
READ_RECORDS = 60_000
SENDS_ALONE, SENDS_TOGETHER = 1_500, 20_000
WAKE_UPS = 600
IDLE_SECONDS = 8.0
FAIRNESS_SECONDS = 4.0

INSERT = "INSERT INTO log (id, timestamp_ms, key, value, headers) VALUES (?, ?, ?, ?, ?)"
SELECT = (
    "SELECT value, key, headers, id, timestamp_ms FROM log "
    "WHERE id >= ? AND id < ? ORDER BY id LIMIT 500"
)


def rows() -> Iterator[Row]:
    yield Row(
        "embedded_produce_100_vs_bare",
        "ratio",
        Target(at_least=0.6),
        produce_100,
        "send_many of 100, four batches on their way, every report awaited; bare: one transaction "
        "of 100 rows with fsync, one after the other",
    )
    yield Row(
        "embedded_senders_64_vs_1",
        "ratio",
        Target(at_least=10),
        senders,
        "single sends: 64 outstanding over 1 outstanding",
    )
    yield Row(
        "embedded_poll_500_vs_bare",
        "ratio",
        Target(at_least=0.5),
        poll_500,
        "polls of 500, value, key, offset and timestamp of each read, headers left packed as the "
        "bare loop leaves them",
    )
    yield Row(
        "embedded_wakeup_p50_vs_fifo",
        "ratio",
        Target(at_most=3),
        wake_up,
        "send in one process to poll's return in another, 200 a second; bare: SQLite commits one "
        "row with the same fsync, then one write through a FIFO",
    )
    yield Row(
        "embedded_idle_core_percent",
        "%",
        Target(at_most=0.5),
        idle,
        "CPU of a process whose group member waits in poll",
    )
    yield Row(
        "embedded_fairness_4",
        "ratio",
        Target(at_least=0.8),
        fairness,
        "records of the slowest over the fastest of four producing processes",
    )


def _batch(size: int) -> list[Record]:
    return [Record(VALUE, KEY, HEADERS, TOPIC, at % PARTITIONS) for at in range(size)]


class _Place:
    """A folder with a broker and a bare database on the same disk."""

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="forebay-bench-")
        self.folder = Path(self._home.name) / "broker"
        self.broker = EmbeddedBroker(EmbeddedSettings(self.folder))
        self.broker.admin().create_topic(TopicSpec(TOPIC, PARTITIONS))
        self.bare = apsw.Connection(str(Path(self._home.name) / "bare.db"))
        for pragma in ("page_size=8192", "journal_mode=wal", "synchronous=full"):
            self.bare.execute(f"PRAGMA {pragma}")
        self.bare.execute("PRAGMA wal_autocheckpoint=2000")
        self.bare.execute(
            "CREATE TABLE log (id INTEGER PRIMARY KEY, timestamp_ms INTEGER NOT NULL, key BLOB, "
            "value BLOB, headers BLOB) STRICT"
        )
        return self

    def __exit__(self, *exc: object) -> None:
        self.bare.close()
        self.broker.close()
        self._home.cleanup()


def produce_100() -> tuple[float, dict[str, float]]:
    with _Place() as place:
        next_offsets = [0] * PARTITIONS
        bare, ours = in_turn(
            lambda: _insert_bare(place.bare, PRODUCE_BATCHES, next_offsets),
            lambda: _send_batches(place.broker, PRODUCE_BATCHES),
        )
    return ours / bare, {"ours_per_second": ours, "bare_per_second": bare}


def _insert_bare(connection: apsw.Connection, batches: int, next_offsets: list[int]) -> float:
    headers = pack_headers(HEADERS)
    started = time.perf_counter()
    for _ in range(batches):
        batch = []
        for at in range(100):
            partition = at % PARTITIONS
            place = partition << OFFSET_BITS | next_offsets[partition]
            next_offsets[partition] += 1
            batch.append((place, time.time_ns() // 1_000_000, KEY, VALUE, headers))
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, batch)
        connection.execute("COMMIT")
    return batches * 100 / (time.perf_counter() - started)


def _send_batches(broker: EmbeddedBroker, batches: int) -> float:
    producer = broker.producer()
    batch = _batch(100)
    reports = 0
    started = time.perf_counter()
    for _ in range(batches):
        producer.send_many(batch)
        while producer.outstanding > 300:
            reports += len(producer.poll(1.0))
    reports += len(producer.close())
    elapsed = time.perf_counter() - started
    assert reports == batches * 100
    return reports / elapsed


def senders() -> tuple[float, dict[str, float]]:
    with _Place() as place:
        alone = _send_singly(place.broker, 1, SENDS_ALONE)
        together = _send_singly(place.broker, 64, SENDS_TOGETHER)
    return together / alone, {"outstanding_1_per_second": alone, "outstanding_64": together}


def _send_singly(broker: EmbeddedBroker, outstanding: int, count: int) -> float:
    producer = broker.producer()
    record = Record(VALUE, KEY, HEADERS, TOPIC, 0)
    reports = 0
    started = time.perf_counter()
    for _ in range(count):
        producer.send(record)
        while producer.outstanding >= outstanding:
            reports += len(producer.poll(1.0))
    reports += len(producer.close())
    assert reports == count
    return count / (time.perf_counter() - started)


def poll_500() -> tuple[float, dict[str, float]]:
    with _Place() as place:
        _send_batches(place.broker, READ_RECORDS // 100)
        reader = apsw.Connection(str(place.folder / "broker.db"))
        bare, ours, decoded = in_turn(
            lambda: _select(reader),
            lambda: _poll(place.broker),
            lambda: _poll(place.broker, with_headers=True),
        )
        reader.close()
    return ours / bare, {
        "ours_per_second": ours,
        "bare_per_second": bare,
        "with_headers_decoded": decoded,
    }


def _select(connection: apsw.Connection) -> float:
    seen = 0
    ids = [row[0] for row in connection.execute("SELECT id FROM partition ORDER BY number")]
    started = time.perf_counter()
    for partition_id in ids:
        at, end = partition_id << OFFSET_BITS, (partition_id + 1) << OFFSET_BITS
        while True:
            before = seen
            for row in connection.execute(SELECT, (at, end)):
                value, key, headers, row_id, timestamp_ms = row
                offset = row_id & OFFSET_MASK
                seen += 1
            if seen == before:
                break
            at = row_id + 1
    assert (value, key, timestamp_ms > 0, offset > 0) == (VALUE, KEY, True, True)
    assert headers
    return seen / (time.perf_counter() - started)


def _poll(broker: EmbeddedBroker, *, with_headers: bool = False) -> float:
    consumer = broker.consumer(None)
    consumer.assign({TopicPartition(TOPIC, number): 0 for number in range(PARTITIONS)})
    seen = 0
    started = time.perf_counter()
    while records := consumer.poll(0, max_records=500):
        for record in records:
            value, key = record.value, record.key
            offset, timestamp_ms = record.offset, record.timestamp_ms
            if with_headers:
                headers = record.headers
        seen += len(records)
    elapsed = time.perf_counter() - started
    assert (seen, value, key) == (READ_RECORDS, VALUE, KEY)
    assert offset > 0 < timestamp_ms
    assert not with_headers or headers == HEADERS
    consumer.close()
    return seen / elapsed


def wake_up() -> tuple[float, dict[str, float]]:
    with _Place() as place:
        ours = _hops(place.folder, "hop_broker")
        bare = _hops(place.folder, "hop_fifo")
        (place.folder / "bare.fifo").unlink()
        least = _hops(place.folder, "hop_file")
    p50, bare_p50 = statistics.median(ours), statistics.median(bare)
    return p50 / bare_p50, {
        "ours_p50_ms": p50,
        "ours_p99_ms": _p99(ours),
        "bare_p50_ms": bare_p50,
        "bare_p99_ms": _p99(bare),
        "file_and_fifo_p50_ms": statistics.median(least),
    }


def _hops(folder: Path, how: str) -> list[float]:
    """Milliseconds from the sender's clock reading to the reader's, one of many at 200 a second."""
    reader = _start(f"{how}_reader", folder, WAKE_UPS)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    sender = _start(f"{how}_sender", folder, WAKE_UPS)
    output, _ = reader.communicate(timeout=60)
    assert sender.wait(30) == 0
    sender.stdout.close()
    return [float(line) for line in output.split()]


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def idle() -> tuple[float, dict[str, float]]:
    with _Place() as place:
        waiting = _start("wait", place.folder, IDLE_SECONDS)
        output, _ = waiting.communicate(timeout=60)
    return float(output), {"seconds": IDLE_SECONDS}


def fairness() -> tuple[float, dict[str, float]]:
    with _Place() as place:
        start_at = time.monotonic() + 2.0
        processes = [_start("produce", place.folder, start_at, FAIRNESS_SECONDS) for _ in range(4)]
        counts = [int(process.communicate(timeout=60)[0]) for process in processes]
    return min(counts) / max(counts), {
        "slowest_per_second": min(counts) / FAIRNESS_SECONDS,
        "fastest_per_second": max(counts) / FAIRNESS_SECONDS,
    }


def _start(role: str, folder: Path, *arguments: float) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), role, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
