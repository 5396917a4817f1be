"""`forebay run xact` as a person starts it, on a backlog or a steady load, and its figures."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import orjson
import polars as pl

from benchmarks.xact_host import NginxHost
from forebay import bootstrap
from forebay.bootstrap.xact import open_xact
from forebay.broker.port import Broker, Producer
from forebay.core.errors import Full
from forebay.core.records import Record, TopicPartition
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.settings import Flags, Settings, read_settings

ATTACHMENTS = "xact_attachments"


@dataclass
class XactPlace:
    """One data folder, with its broker open in this process, too."""

    folder: Path
    host: NginxHost
    broker_url: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        flags = Flags(broker=self.broker_url, folder=self.folder, development=True)
        self.settings: Settings = read_settings(flags, self.environment)
        self.broker: Broker = bootstrap.open_broker(self.settings.broker, silent)
        pipeline = open_xact(self.settings, silent)
        create_topics(self.broker.admin(), plan_topics(pipeline), foreign_too=True)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ALLOWED_ATTACHMENT_DOMAINS": "127.0.0.1",
            "FOREBAY_CA_FILE": str(self.host.ca_file),
            **self.more,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.close()

    def event(self, number: int, links: Iterable[str]) -> Record:
        trace_id = f"tr-{number:07}"
        value = {
            "type": "verisk.claims.property.xn.documentsReceived",
            "version": 1,
            "utcDateTime": datetime.now(UTC).isoformat(),
            "traceId": trace_id,
            "data": {
                "assignmentId": f"A-{number % 1000:04}",
                "carrierId": "C7",
                "description": "Documents were received for an assignment",
                "attachments": list(links),
                "adm": {"coverageLoss": {"claimNumber": f"CL-{number}"}},
                "contact": {"type": "Insured", "name": "Test", "contactMethods": {}},
            },
        }
        return Record(orjson.dumps(value), trace_id.encode(), (), self.topics.events)

    @property
    def topics(self) -> Any:
        return self.settings.xact.topics

    def send_backlog(self, events: int, size: str = "20k") -> None:
        producer = self.broker.producer()
        for number in range(events):
            send(producer, self.event(number, [self.host.link(size, number)]))
        drain(producer, events)
        producer.close()

    def run(self, *options: str) -> subprocess.Popen[bytes]:
        """Its log goes to a file, at the level that tells of every attachment."""
        log = (self.folder / "run.log").open("ab")
        broker = ["--broker", self.broker_url] if self.broker_url else []
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "forebay", "run", "xact", "--dev"),
                *("--dir", str(self.folder), "--log-level", "info", "--log-format", "json"),
                *(*broker, *options),
            ],
            env=os.environ | self.environment,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )

    def run_until_idle(self, within_seconds: float, *options: str) -> None:
        process = self.run("--until", "idle", *options)
        try:
            code = process.wait(within_seconds)
        except subprocess.TimeoutExpired:
            stop(process)
            raise
        if code != 0:
            last = (self.folder / "run.log").read_text(errors="replace").splitlines()[-3:]
            raise RuntimeError(f"forebay run xact ended with {code}: {last}")

    def records(self, topic: str) -> Iterator[Record]:
        """All that a topic holds now."""
        admin = self.broker.admin()
        (described,) = admin.describe_topics([topic])
        places = [TopicPartition(topic, number) for number in range(described.partitions)]
        marks = admin.watermarks(places)
        starts = {at: low for at, (low, end) in marks.items() if low < end}
        consumer = self.broker.consumer(None)
        try:
            consumer.assign(starts)
            while any(consumer.position(at) < marks[at].end for at in starts):
                yield from consumer.poll(0.2, 5_000)
        finally:
            consumer.close()

    def stored_at(self) -> dict[str, float]:
        """When the file of each trace id was durable, in seconds since the epoch."""
        found: dict[str, float] = {}
        for record in self.records(self.topics.downloads_results):
            result = orjson.loads(record.value or b"{}")
            if result["status"] == "completed":
                at = datetime.fromisoformat(result["created_at"]).timestamp()
                found.setdefault(result["trace_id"], at)
        return found

    def accepted_at(self) -> dict[str, float]:
        return {
            (record.key or b"").decode(): record.timestamp_ms / 1000
            for record in self.records(self.topics.events)
        }

    def recorded_at(self) -> dict[str, float]:
        """When the row of each trace id was committed: the time of its commit."""
        found: dict[str, float] = {}
        table = self.settings.tables_folder / ATTACHMENTS
        for commit in sorted((table / "_delta_log").glob("*.json")):
            actions = [orjson.loads(line) for line in commit.read_bytes().splitlines()]
            at = next(a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a) / 1000
            for action in actions:
                if "add" in action and action["add"]["dataChange"]:
                    rows = pl.read_parquet(table / action["add"]["path"], columns=["trace_id"])
                    for trace_id in rows["trace_id"]:
                        found.setdefault(trace_id, at)
        return found


@contextmanager
def fresh_place(host: NginxHost, **more: Any) -> Iterator[XactPlace]:
    """Kept until the end: after many files were deleted, making one costs several times as much."""
    with XactPlace(Path(tempfile.mkdtemp(dir=host.home)), host, **more) as place:
        yield place


def send(producer: Producer, record: Record) -> None:
    while True:
        try:
            producer.send(record)
        except Full:
            producer.poll(0.01)
        else:
            return


def drain(producer: Producer, records: int, seconds: float = 60.0) -> None:
    """Until all are acknowledged; some reports may have been taken before."""
    deadline = time.monotonic() + seconds
    while producer.outstanding and time.monotonic() < deadline:
        for report in producer.poll(0.1):
            if report.error is not None:
                raise report.error
    if producer.outstanding:
        raise TimeoutError(f"{producer.outstanding} of {records} events were not acknowledged")


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def children_of(process: subprocess.Popen[bytes]) -> list[int]:
    told = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in told.split()]


def part_of(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[words.index(b"--part") + 1].decode() if b"--part" in words else ""


def peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def share(values: Iterable[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def as_json(line: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(line)
    return told
