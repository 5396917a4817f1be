"""Members of one group that are killed, frozen, stopped and joined by others while they work."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forebay.bootstrap import connect
from forebay.broker.port import Broker
from forebay.core.envelope import PREFIX, read_envelope
from forebay.core.errors import UnknownGroup
from forebay.core.records import Record, TopicPartition
from forebay.engine.topics import create_topics, plan_topics
from torture.engine_audit import Hurt, Stored
from torture.engine_worker import DAMAGED, INPUT, make_pipeline, session_seconds
from torture.ledger import number_of

FAULTS = ("kill", "freeze", "freeze_long", "stop", "join")
PRODUCERS = 2
DRAIN_SECONDS = 60.0
EXIT_SECONDS = 20.0
MEMBERS_MIN = 2


@dataclass(frozen=True)
class Plan:
    """What one campaign does on one broker."""

    url: str
    seed: int
    seconds: float
    members: int
    partitions: int
    records: int

    @property
    def executor(self) -> str:
        return ("threads", "async")[self.seed % 2]


class Campaign:
    def __init__(self, home: Path, plan: Plan) -> None:
        self.plan = plan
        self.folder = home
        self.ledgers = home / "ledgers"
        self.ledgers.mkdir(parents=True)
        self.random = random.Random(plan.seed)
        self._first = self.random.sample(FAULTS, len(FAULTS))
        self.faults: Counter[str] = Counter()
        self.hurts: list[Hurt] = []
        self.told: list[str] = []
        self.stuck = 0
        self.drained_in = 0.0
        self._pipeline = make_pipeline(None, plan.partitions, is_async=False)
        (self._route,) = self._pipeline.routes
        self._members: list[subprocess.Popen] = []
        self._producers: list[subprocess.Popen] = []
        self._ids = iter(range(1, 1_000_000))
        self._broker: Broker
        self._environment = os.environ | {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(home / "bytecode"),
        }

    def run(self) -> Stored:
        """Hurt them for the time that was planned, then let them finish. Gives what is stored."""
        with self._started():
            deadline = time.monotonic() + self.plan.seconds
            while time.monotonic() < deadline:
                self._hurt_somebody()
            self._drain()
            return self._read_topics()

    @contextmanager
    def _started(self) -> Iterator[None]:
        self._broker = connect(self.plan.url)
        try:
            create_topics(self._broker.admin(), plan_topics(self._pipeline), foreign_too=True)
            for _ in range(PRODUCERS):
                share = f"{self.plan.records // PRODUCERS}/{self.plan.seconds}"
                self._producers.append(self._start("produce", share))
            for _ in range(self.plan.members):
                self._join()
            yield
        finally:
            for worker in (*self._members, *self._producers):
                worker.kill()
                worker.wait()
            self._broker.close()

    def _start(self, role: str, share: str) -> subprocess.Popen:
        program = [sys.executable, str(Path(__file__).with_name("engine_worker.py"))]
        arguments = [role, self.plan.url, str(self.folder), str(next(self._ids)), share]
        return subprocess.Popen([*program, *arguments], env=self._environment)

    def _join(self) -> None:
        share = f"{self.plan.partitions}/{self.plan.executor}"
        self._members.append(self._start("work", share))

    def _hurt_somebody(self) -> None:
        time.sleep(self.random.uniform(0.1, 0.8))
        fault = self._first.pop() if self._first else self._any_fault()
        if fault == "stop" and len(self._members) <= MEMBERS_MIN:
            fault = "join"
        if fault == "join" and len(self._members) >= self.plan.members:
            fault = "stop"
        member = self.random.choice(self._members)
        committed, retries = self._standing()
        until = float("inf")
        match fault:
            case "kill":
                self._kill(member)
            case "freeze":
                until = self._freeze(member, self.random.uniform(0.05, 0.5))
            case "freeze_long":
                until = self._freeze(member, session_seconds(self.plan.url) + 1.0)
            case "stop":
                self._stop([member])
            case _:
                self._join()
        hurt = 0 if fault in {"stop", "join"} else member.pid
        self.hurts.append(Hurt(hurt, committed, until, retries))
        self.faults[fault] += 1

    def _any_fault(self) -> str:
        return self.random.choices(FAULTS, (6, 3, 1, 3, 3))[0]

    def _standing(self) -> tuple[dict[int, int], int]:
        """What the group committed of the input, and how many retries were read at most."""
        lag, committed = 0, {}
        for position in self._positions(self._route.group):
            if position.committed is not None and position.partition.topic == INPUT:
                committed[position.partition.partition] = position.committed.offset
        for position in self._positions(self._pipeline.scheduler_group):
            lag += position.lag
        return committed, lag

    def _positions(self, group: str) -> tuple:
        try:
            return self._broker.admin().describe_group(group).positions
        except UnknownGroup:
            return ()

    def _kill(self, member: subprocess.Popen) -> None:
        member.kill()
        member.wait()
        self._members.remove(member)
        self._join()

    def _freeze(self, member: subprocess.Popen, seconds: float) -> float:
        """Gives when it must have noticed that others have its partitions."""
        os.kill(member.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(member.pid, signal.SIGCONT)
        return time.monotonic() + 2.0

    def _stop(self, workers: list[subprocess.Popen]) -> None:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            self._members.remove(worker)
            try:
                code = worker.wait(EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.kill(worker.pid, signal.SIGUSR1)
                time.sleep(0.5)
                worker.kill()
                worker.wait()
                self.told.append(f"a member did not end within {EXIT_SECONDS:g} s")
            else:
                # It may have been asked before it could listen.
                if code not in {0, -signal.SIGTERM}:
                    self.told.append(f"a member that was stopped ended with {code}")

    def _drain(self) -> None:
        """Nobody is hurt any more: everything must be resolved within a bounded time."""
        for producer in self._producers:
            if code := producer.wait(DRAIN_SECONDS):
                self.told.append(f"a producer ended with {code}")
        begun = time.monotonic()
        while (stuck := self._stuck()) and time.monotonic() - begun < DRAIN_SECONDS:
            time.sleep(0.1)
        self.drained_in = time.monotonic() - begun
        self.stuck = len(stuck)
        self.told += [f"{place} is stuck" for place in stuck]
        for member in self._members:
            if member.poll() is not None:
                self.told.append(f"a member ended by itself with {member.returncode}")
        self._stop(list(self._members))

    def _stuck(self) -> list[TopicPartition]:
        """Partitions that are not committed to their end."""
        admin = self._broker.admin()
        readers = [(self._pipeline.scheduler_group, tier.topic) for tier in self._route.tiers]
        readers.append((self._route.group, INPUT))
        stuck = []
        for group, topic in readers:
            known = {p.partition: p.committed for p in self._positions(group) if p.committed}
            (described,) = admin.describe_topics([topic])
            places = [TopicPartition(topic, number) for number in range(described.partitions)]
            for at, (low, end) in admin.watermarks(places).items():
                if (known[at].offset if at in known else low) < end:
                    stuck.append(at)
        return stuck

    def _read_topics(self) -> Stored:
        sent: Counter[int] = Counter()
        for record in self._read(INPUT):
            if not any(name.startswith(PREFIX) for name, _ in record.headers):
                sent[_number(record)] += 1
        letters = []
        for record in self._read(str(self._route.dead_letter_topic)):
            envelope = read_envelope(record)
            failure = envelope and envelope.failure
            letters.append((_number(record), failure.category if failure else "none"))
        return Stored(sent, letters)

    def _read(self, topic: str) -> Iterator[Record]:
        (described,) = self._broker.admin().describe_topics([topic])
        places = [TopicPartition(topic, number) for number in range(described.partitions)]
        marks = self._broker.admin().watermarks(places)
        consumer = self._broker.consumer(None)
        consumer.assign({at: low for at, (low, end) in marks.items() if low < end})
        while any(consumer.position(at) < marks[at].end for at in consumer.assignment):
            yield from consumer.poll(0.2, max_records=10_000)
        consumer.close()


def _number(record: Record) -> int:
    number = number_of(record.value or b"")
    return DAMAGED if number is None else number
