"""Producers and consumers that are killed and frozen while they work."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.records import TopicPartition
from forebay.core.topics import TopicSpec
from torture.ledger import number_of, read_all
from torture.worker import GROUP, PARTITIONS, SESSION_SECONDS, TOPIC

CAST = ("produce",) * 3 + ("consume",) * 3 + ("read_slowly",)
EXIT_SECONDS = 15.0
# Two probes of the keeper; joining the queue at a busy gate and a poll come on top.
TAKEOVER_SECONDS = 2 * 0.2 + 0.6


class Campaign:
    def __init__(self, home: Path, seed: int) -> None:
        self.folder = home / "broker"
        self.ledgers = home / "ledgers"
        self.ledgers.mkdir(parents=True)
        self.random = random.Random(seed)
        self.faults: Counter[str] = Counter()
        self.takeovers: list[float] = []
        self.hung: list[str] = []
        self.wal_bytes_max = 0
        self._workers: dict[subprocess.Popen, tuple[str, int]] = {}
        self._ids = iter(range(1, 1_000_000))

    def run(self, seconds: float) -> None:
        with self._started():
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                self._hurt_somebody()
                self._watch_wal()
            self._drain()

    @contextmanager
    def _started(self) -> Iterator[None]:
        broker = EmbeddedBroker(EmbeddedSettings(self.folder))
        broker.admin().create_topic(TopicSpec(TOPIC, PARTITIONS))
        broker.close()
        try:
            for role in CAST:
                self._start(role)
            yield
        finally:
            for worker in self._workers:
                worker.kill()
                worker.wait()

    def _start(self, role: str) -> None:
        number = next(self._ids)
        arguments = [str(self.folder), str(self.ledgers), str(number)]
        worker = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("worker.py")), role, *arguments]
        )
        self._workers[worker] = (role, number)

    def _hurt_somebody(self) -> None:
        worker = self.random.choice(list(self._workers))
        role, _ = self._workers[worker]
        fault = self.random.choices(("kill", "freeze", "freeze_long", "peace"), (6, 3, 1, 1))[0]
        match fault:
            case "kill":
                self._kill(worker, role)
            case "freeze":
                self._freeze(worker, self.random.uniform(0.05, 0.5))
            case "freeze_long":
                self._freeze(worker, SESSION_SECONDS + 1.0)
            case _:
                time.sleep(self.random.uniform(0.1, 0.5))
        self.faults[f"{fault}_{role}"] += fault != "peace"
        time.sleep(self.random.uniform(0.1, 0.5))

    def _kill(self, worker: subprocess.Popen, role: str) -> None:
        owned = self._owned_by(worker.pid) if role == "consume" else set()
        killed_at = time.monotonic()
        worker.kill()
        worker.wait()
        del self._workers[worker]
        if owned:
            self._time_takeover(owned, worker.pid, killed_at)
        self._start(role)

    def _freeze(self, worker: subprocess.Popen, seconds: float) -> None:
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(worker.pid, signal.SIGCONT)

    def _owned_by(self, process: int) -> set[int]:
        owners: dict[int, int] = {}
        for entry in sorted(read_all(self.ledgers, "owners"), key=lambda entry: entry.at):
            owners[entry.partition] = entry.process
        return {partition for partition, owner in owners.items() if owner == process}

    def _time_takeover(self, owned: set[int], process: int, killed_at: float) -> None:
        deadline = killed_at + 10
        taken: dict[int, float] = {}
        while owned - taken.keys() and time.monotonic() < deadline:
            taken = {
                entry.partition: entry.at
                for entry in read_all(self.ledgers, "owners")
                if entry.at > killed_at and entry.process != process
            }
            time.sleep(0.02)
        if owned - taken.keys():
            self.hung.append(f"partitions {sorted(owned - taken.keys())} were not taken over")
            return
        self.takeovers.append(max(taken[partition] for partition in owned) - killed_at)

    def _watch_wal(self) -> None:
        wal = self.folder / "broker.db-wal"
        self.wal_bytes_max = max(self.wal_bytes_max, wal.stat().st_size)

    def _drain(self) -> None:
        """Producers stop, consumers finish, everybody ends by itself."""
        self._stop("produce")
        self._stop("read_slowly")
        deadline = time.monotonic() + 30
        while self._lag() and time.monotonic() < deadline:
            time.sleep(0.05)
        self._stop("consume")

    def _stop(self, role: str) -> None:
        ending = [worker for worker, (its_role, _) in self._workers.items() if its_role == role]
        for worker in ending:
            worker.terminate()
        for worker in ending:
            try:
                worker.wait(EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.kill(worker.pid, signal.SIGUSR1)
                time.sleep(0.5)
                self.hung.append(f"a {role} process did not end within {EXIT_SECONDS:g} s")
                worker.kill()
                worker.wait()
            else:
                if worker.returncode:
                    self.hung.append(f"a {role} process ended with {worker.returncode}")
            del self._workers[worker]

    def _lag(self) -> int:
        broker = EmbeddedBroker(EmbeddedSettings(self.folder))
        try:
            return broker.admin().describe_group(GROUP).lag
        finally:
            broker.close()


def read_log(folder: Path) -> tuple[dict[tuple[int, int], int | None], dict[int, int]]:
    """All that the broker holds, and how far the group has committed."""
    broker = EmbeddedBroker(EmbeddedSettings(folder))
    try:
        consumer = broker.consumer(None)
        partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        consumer.assign(dict.fromkeys(partitions, 0))
        log: dict[tuple[int, int], int | None] = {}
        while records := consumer.poll(0.0, max_records=10_000):
            log |= {(r.partition, r.offset): number_of(r.value or b"") for r in records}
        described = broker.admin().describe_group(GROUP)
        committed = {
            position.partition.partition: position.committed.offset
            for position in described.positions
            if position.committed
        }
        return log, committed
    finally:
        broker.close()
