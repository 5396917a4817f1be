"""A broker on a disk that fails: what was acknowledged must be there afterwards, and no more."""

import random
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import ForebayError, Unavailable, Unusable
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from torture.ledger import number_of, value_of
from torture.storage import Disk

TOPIC = "disk"
PARTITIONS = 3
GROUP = "readers"


@dataclass
class Outcome:
    acked: int = 0
    lost: int = 0
    violations: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Outcome") -> None:
        self.acked += other.acked
        self.lost += other.lost
        self.violations += other.violations
        self.faults += other.faults


class Session:
    """One broker on a failing disk, fed until told to stop; knows what was acknowledged."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.folder = folder
        self.acked: dict[tuple[int, int], int] = {}
        self.committed: dict[int, int] = {}
        self.errors: list[ForebayError] = []
        self._number = 0
        self._disk = disk
        self._open()
        self._broker.admin().create_topic(TopicSpec(TOPIC, PARTITIONS))

    def _open(self) -> None:
        self._broker = EmbeddedBroker(EmbeddedSettings(self.folder), vfs=self._disk.name)
        self._producer = self._broker.producer()

    def reopen(self) -> None:
        self.close()
        self._open()

    def work(self, chance: random.Random) -> None:
        """Send a batch, wait for its reports, commit now and then."""
        size = chance.choice((1, 3, 20, 200))
        first, self._number = self._number, self._number + size
        records = [
            Record(value_of(first + at), topic=TOPIC, partition=at % PARTITIONS)
            for at in range(size)
        ]
        try:
            self._producer.send_many(records, first)
            self._producer.flush(10)
        except ForebayError as error:
            self.errors.append(error)
            return
        for at, report in enumerate(self._producer.poll(0)):
            if report.error is None:
                self.acked[report.partition, report.offset] = first + at
            else:
                self.errors.append(report.error)
        if chance.random() < 0.3:
            self._commit()

    def _commit(self) -> None:
        ends: dict[int, int] = {}
        for partition, offset in self.acked:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        try:
            admin = self._broker.admin()
            admin.reset_offsets(GROUP, {TopicPartition(TOPIC, p): o for p, o in ends.items()})
        except ForebayError as error:
            self.errors.append(error)
        else:
            self.committed = ends

    def close(self) -> None:
        with suppress(ForebayError, apsw.Error):
            self._broker.close()


def power_cut(home: Path, seed: int) -> Outcome:
    """Cut at a random write or sync; what the platter has is opened by a new broker."""
    chance = random.Random(seed)
    disk = Disk(f"cut-{seed}", chance)
    session = Session(home / "live", disk)
    moment = chance.randrange(1, 300)
    platter: dict[str, bytes] = {}

    def cut(_: str) -> None:
        if sum(disk.hits.values()) >= moment:
            platter.update(disk.cut_power())
            raise apsw.IOError("the power is cut")

    disk.hits.clear()
    disk.fault = cut
    while not platter:
        session.work(chance)
    session.close()
    after = home / "after"
    after.mkdir()
    for name, content in platter.items():
        (after / name).write_bytes(content)
    return _judge(after, session, Counter(power_cut=1))


def full_disk(home: Path, seed: int) -> Outcome:
    """Full for a while; then there is room again and everything goes on by itself."""
    return _failing_writes(home, seed, "disk_full", apsw.FullError("the disk is full"))


def failed_write(home: Path, seed: int) -> Outcome:
    return _failing_writes(home, seed, "write_error", apsw.IOError("the disk failed"))


def _failing_writes(home: Path, seed: int, fault: str, error: apsw.Error) -> Outcome:
    chance = random.Random(seed)
    disk = Disk(f"{fault}-{seed}", chance)
    session = Session(home / "live", disk)

    def fail(operation: str) -> None:
        if operation == "write" and chance.random() < 0.5:
            raise error

    for _ in range(chance.randrange(3, 10)):
        session.work(chance)
    disk.fault = fail
    for _ in range(6):
        session.work(chance)
    told = len(session.errors)
    disk.fault = lambda operation: None
    before = len(session.acked)
    for _ in range(5):
        session.work(chance)
    session.close()
    outcome = _judge(home / "live", session, Counter({fault: 1}))
    if not told or not all(isinstance(known, Unavailable) for known in session.errors):
        outcome.violations.append(f"{fault}: the sender was told {session.errors[:3]}")
    if len(session.acked) == before:
        outcome.violations.append(f"{fault}: nothing went on after the disk was well again")
    return outcome


def failed_sync(home: Path, seed: int) -> Outcome:
    """A refused fsync stops the writer for good: a second try would lie."""
    chance = random.Random(seed)
    disk = Disk(f"sync-{seed}", chance)
    session = Session(home / "live", disk)
    error = apsw.IOError("the disk refused")
    error.extendedresult = apsw.SQLITE_IOERR_FSYNC

    def fail(operation: str) -> None:
        if operation == "sync":
            raise error

    session.work(chance)
    disk.fault = fail
    session.work(chance)
    disk.fault = lambda operation: None
    before = len(session.acked)
    session.work(chance)
    outcome = Outcome(faults=Counter(sync_error=1))
    if len(session.acked) != before or not isinstance(session.errors[-1], Unusable):
        outcome.violations.append("sync_error: the writer went on after a failed fsync")
    session.reopen()
    session.work(chance)
    session.close()
    outcome.add(_judge(home / "live", session, Counter()))
    return outcome


def _judge(folder: Path, session: Session, faults: Counter[str]) -> Outcome:
    broker = EmbeddedBroker(EmbeddedSettings(folder))
    try:
        outcome = Outcome(acked=len(session.acked), faults=faults)
        log = _read(broker)
        for place, number in session.acked.items():
            if place not in log:
                outcome.lost += 1
            elif log[place] != number:
                outcome.violations.append(f"another record is at {place}")
        intact = broker.diagnose()[0]
        if not intact.ok:
            outcome.violations.append(intact.detail)
        outcome.violations += _look_at_commits(broker, session, log)
        return outcome
    finally:
        broker.close()


def _read(broker: EmbeddedBroker) -> dict[tuple[int, int], int | None]:
    consumer = broker.consumer(None)
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    consumer.assign(dict.fromkeys(partitions, 0))
    log: dict[tuple[int, int], int | None] = {}
    while records := consumer.poll(0.0, max_records=10_000):
        log |= {(r.partition, r.offset): number_of(r.value or b"") for r in records}
    return log


def _look_at_commits(
    broker: EmbeddedBroker, session: Session, log: dict[tuple[int, int], int | None]
) -> list[str]:
    """A commit that was acknowledged is there; none is ahead of the log."""
    if not session.committed:
        return []
    problems = []
    for position in broker.admin().describe_group(GROUP).positions:
        partition = position.partition.partition
        offset = (position.committed or CommittedOffset(0)).offset
        if offset < session.committed.get(partition, 0):
            problems.append(f"the commit of partition {partition} went back to {offset}")
        if offset > position.watermarks.end:
            problems.append(f"the commit of partition {partition} is ahead of the log")
    return problems


ROUNDS = (power_cut, power_cut, power_cut, full_disk, failed_write, failed_sync)


def run_round(seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as home:
        return ROUNDS[seed % len(ROUNDS)](Path(home), seed)
