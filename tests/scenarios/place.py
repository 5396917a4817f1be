"""A folder with a pipeline in it, a broker, and whole processes that run the one on the other."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from runpy import run_path

from forebay.bootstrap import connect, open_site
from forebay.broker.port import Broker
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import UnknownGroup
from forebay.core.records import Record, TopicPartition
from forebay.engine.pipeline import Pipeline
from forebay.engine.run import PipelineRun
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.settings import Flags, read_settings
from forebay.testing.waiting import eventually

# What every pipeline of these tests begins with: its own names, and a notebook outside the broker.
HEAD = """
import os, signal, time
from pathlib import Path
from forebay import Done, Pipeline, Reject, Retry, Skip, Topic

NAME = "{name}"
INPUT = f"{{NAME}}.in"
OUT = f"{{NAME}}.out"
NOTES = Path(__file__).with_name("notes")

def note(word):
    with NOTES.open("ab", buffering=0) as notes:
        notes.write(f"{{word}}\\n".encode())

flow = Pipeline(NAME, topics=[Topic(INPUT, {partitions}), Topic(OUT, 1)])
"""
OURS = ("FOREBAY_", "KAFKA_", "EVENTHUB_", "LOG_")


@dataclass(frozen=True)
class Ending:
    """How a process ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def receipt(self):
        return json.loads(self.out.splitlines()[-1])


class Running:
    """A process whose words go to files, so that nothing blocks it."""

    def __init__(self, process: subprocess.Popen, out: Path, err: Path) -> None:
        self.process = process
        self._out, self._err = out, err

    @property
    def said(self) -> str:
        return self._err.read_text()

    def events(self, name: str) -> list[dict[str, object]]:
        """Of its log, where that is as detailed as info."""
        lines = [line for line in self.said.splitlines() if line.startswith("{")]
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    @property
    def children(self) -> dict[str, int]:
        """Part → process id, as a supervisor's children are started."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        parts = {}
        for pid in map(int, listed.split()):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if "--part" in words:
                parts[words[words.index("--part") + 1]] = pid
        return parts

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def terminate(self, within_seconds: float = 30) -> Ending:
        self.signal(signal.SIGTERM)
        return self.end(within_seconds)

    def end(self, within_seconds: float = 60) -> Ending:
        self.process.wait(within_seconds)
        return Ending(self.process.returncode, self._out.read_text(), self.said)


class Place:
    def __init__(self, folder: Path, url: str, bytecode: Path) -> None:
        self.folder = folder
        self.url = url
        self.name = f"p{uuid.uuid4().hex[:6]}"
        self.input, self.out = f"{self.name}.in", f"{self.name}.out"
        self._bytecode = bytecode
        self._started: list[Running] = []

    @property
    def is_embedded(self) -> bool:
        return self.url.startswith("embedded")

    @cached_property
    def broker(self) -> Broker:
        return connect(self.url)

    def declare(self, source: str, *, partitions: int = 4) -> None:
        head = HEAD.format(name=self.name, partitions=partitions)
        (self.folder / "flow.py").write_text(head + source)

    def start(self, command: str, *arguments: str) -> Running:
        """`run` or `worker` of the pipeline, or another command word for word."""
        number = len(self._started)
        out, err = self.folder / f"out-{number}", self.folder / f"err-{number}"
        mine = ("flow:flow",) if command in {"run", "worker", "audit"} else ()
        with out.open("wb") as to_out, err.open("wb") as to_err:
            process = subprocess.Popen(
                [sys.executable, "-m", "forebay", command, *mine, *arguments, *self._where],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
            )
        self._started.append(Running(process, out, err))
        return self._started[-1]

    def __call__(self, command: str, *arguments: str) -> Ending:
        ending = self.start(command, *arguments, "--json").end()
        assert "Traceback" not in ending.err, ending.err
        return ending

    @property
    def _where(self) -> tuple[str, ...]:
        return ("--broker", self.url, "--dir", str(self.folder / "data"))

    @property
    def _environment(self) -> dict[str, str]:
        mine = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        return mine | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self._bytecode)}

    @property
    def pipeline(self) -> Pipeline:
        return run_path(str(self.folder / "flow.py"))["flow"]

    def create_topics(self) -> None:
        """As `run` would, before anything is produced."""
        create_topics(self.broker.admin(), plan_topics(self.pipeline), foreign_too=True)

    @contextmanager
    def running_here(self, consumer: ConsumerSettings) -> Iterator[PipelineRun]:
        """In this process, with settings that the command line does not know."""
        settings = read_settings(Flags(broker=self.url, folder=self.folder / "data"), {})
        with open_site(settings, self.broker, silent) as site:
            run = PipelineRun(self.pipeline, replace(site, consumer=consumer), part="records")
            run.start()
            try:
                yield run
            finally:
                run.stop()
                run.close()

    def produce(self, values: Iterable[bytes | Record | None], topic: str | None = None) -> None:
        producer = self.broker.producer()
        for number, value in enumerate(values):
            record = value if isinstance(value, Record) else Record(value, b"key-%d" % number)
            producer.send(record._replace(topic=topic or self.input))
        reports = producer.close(30)
        assert [report.error for report in reports if report.error] == []

    def records(self, topic: str) -> list[Record]:
        starts = {at: low for at, (low, end) in self.watermarks(topic).items() if low < end}
        if not starts:
            return []
        ends = {at: end for at, (_, end) in self.watermarks(topic).items()}
        consumer = self.broker.consumer(None)
        consumer.assign(starts)
        records: list[Record] = []
        while any(consumer.position(at) < ends[at] for at in starts):
            records += consumer.poll(0.2, max_records=5_000)
        consumer.close()
        return records

    def letters(self, stage: str = "work") -> list[Record]:
        return self.records(f"{self.name}-{stage}.dlq")

    def watermarks(self, topic: str):
        admin = self.broker.admin()
        (described,) = admin.describe_topics([topic])
        places = [TopicPartition(topic, number) for number in range(described.partitions)]
        return admin.watermarks(places)

    def committed(self, stage: str = "work") -> dict[str, int]:
        """As a receipt writes it."""
        try:
            positions = self.broker.admin().describe_group(f"{self.name}-{stage}").positions
        except UnknownGroup:
            return {}
        return {
            f"{known.partition.topic}:{known.partition.partition}": known.committed.offset
            for known in positions
            if known.committed
        }

    def ledger(self, column: str) -> list[object]:
        """Of the dead letters; nothing where nobody has begun it yet."""
        question = f"SELECT {column} FROM dead_letters"  # noqa: S608 - a test's own column
        return column_of(self.folder / "data" / "state.db", question)

    @property
    def notes(self) -> Counter[str]:
        notes = self.folder / "notes"
        return Counter(notes.read_text().split()) if notes.exists() else Counter()

    def wait_for_notes(self, count: int, within_seconds: float = 30) -> None:
        eventually(lambda: self.notes.total() >= count, within_seconds=within_seconds)

    def close(self) -> None:
        for running in self._started:
            doomed = [running.process.pid]
            if running.process.poll() is None:
                doomed += running.children.values()
            for pid in doomed:
                _kill(pid)
            running.process.wait()
        self.broker.close()


def column_of(path: Path, question: str) -> list[object]:
    """Nothing where nobody made the table yet."""
    if not path.is_file():
        return []
    with closing(sqlite3.connect(path)) as connection:
        try:
            return [value for (value,) in connection.execute(question)]
        except sqlite3.OperationalError:
            return []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def is_alive(pid: int) -> bool:
    """A zombie has ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
