"""A member's producer and consumer: the memory broker's, with faults before and behind them."""

import random
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.simulation.faults import Faults
from engine.simulation.oracle import Holding, Oracle
from forebay.broker.port import CommitResult, Rebalance, Report, Watermarks
from forebay.core.envelope import seal
from forebay.core.errors import (
    CommitFailed,
    Fenced,
    ForebayError,
    Full,
    OutcomeUnknown,
    RecordTooLarge,
    Unavailable,
)
from forebay.core.records import UNSET, CommittedOffset, Offset, Record, TopicPartition
from forebay.engine.dead_letters import DeadLetter
from forebay.testing.clock import FakeClock
from forebay.testing.memory_consumer import MemoryConsumer
from forebay.testing.memory_producer import MemoryProducer

GAP = "gap"


def unavailable() -> Unavailable:
    return Unavailable("The broker is away for a moment; this is tried again.")


class Crash(BaseException):
    """The member's process is gone, in the middle of whatever it did."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all members of a run share."""

    name: str
    clock: FakeClock
    chance: random.Random
    faults: Faults
    oracle: Oracle

    def may_crash(self) -> None:
        if self.faults.hit("crash_in_call"):
            raise Crash


class Sent(NamedTuple):
    report: Report
    record: Record
    delivery: int


class FaultyProducer:
    def __init__(
        self, inner: MemoryProducer, around: Surroundings, holdings: dict[TopicPartition, Holding]
    ) -> None:
        self._inner = inner
        self._around = around
        self._holdings = holdings
        self._reports: deque[Sent] = deque()

    @property
    def outstanding(self) -> int:
        return len(self._reports)

    def send(self, record: Record, token: object = None) -> None:
        around = self._around
        around.may_crash()
        if around.faults.hit("producer_full"):
            raise Full("The producer's buffer is full; poll, then send again.")
        delivery = around.oracle.sends(self._holdings, record)
        report = self._fate_of(record, token)
        around.oracle.note(f"{around.name} sends {{}}: {{}}", record.topic, report.error or "ok")
        self._reports.append(Sent(report, record, delivery))

    def _fate_of(self, record: Record, token: object) -> Report:
        faults = self._around.faults
        failed = Report(token, record.topic, record.partition, UNSET, UNSET, unavailable())
        if faults.hit("report_failed"):
            return failed
        if record.topic == "out" and faults.hit("too_large_report"):
            return failed._replace(error=RecordTooLarge("The broker takes no record like it."))
        try:
            self._inner.send(record, token)
        except RecordTooLarge:
            faults.seen("record_shrunk" if record.topic != "out" else "output_refused")
            raise
        (report,) = self._inner.poll(0)
        if faults.hit("report_unknown"):
            return failed._replace(error=OutcomeUnknown("No answer came in time."))
        return report

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        for record in records:
            self.send(record, token)
        return len(records)

    def poll(self, timeout_seconds: float) -> list[Report]:
        """Reports in any order but that of their topic's partition, and not all of them."""
        around = self._around
        around.may_crash()
        given: list[Report] = []
        late: deque[Sent] = deque()
        for sent in self._reports:
            if around.faults.hit("report_late"):
                late.append(sent)
                continue
            if sent.report.error is None:
                around.oracle.acknowledged(sent.record, sent.delivery)
            elif isinstance(sent.report.error, RecordTooLarge):
                around.oracle.refused(sent.record)
            given.append(sent.report)
        self._reports = late
        if not around.faults.are_over:
            around.chance.shuffle(given)
        if not given:
            around.clock.advance(timeout_seconds)
        return given

    def flush(self, timeout_seconds: float) -> int:
        return len(self._reports)

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:
        return []


class LetterPlace:
    """Implements LetterFile and Spill: durable on return, where it is not away."""

    def __init__(self, around: Surroundings, holdings: dict[TopicPartition, Holding]) -> None:
        self._around = around
        self._holdings = holdings

    def write(self, letters: Sequence[DeadLetter]) -> None:
        self._around.may_crash()
        if self._around.faults.hit("letter_place_away"):
            raise unavailable()
        for letter in letters:
            sealed = seal(letter.record, letter.envelope)
            record = letter.record._replace(headers=sealed, topic="kept.dlq")
            delivery = self._around.oracle.sends(self._holdings, record)
            self._around.oracle.acknowledged(record, delivery)

    def keep(self, letter: DeadLetter, topic: str) -> None:
        self._around.faults.seen("letter_spilled")
        self.write([letter])

    def close(self) -> None:
        """Nothing is open."""


class WatchedListener:
    """Tells the oracle what a member holds, exactly as long as it does."""

    def __init__(
        self, inner: Rebalance, around: Surroundings, holdings: dict[TopicPartition, Holding]
    ) -> None:
        self._inner = inner
        self._around = around
        self._holdings = holdings
        self._had: set[TopicPartition] = set()

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        for at, known in committed.items():
            self._holdings[at] = Holding(known.offset if known else None)
            if at in self._had:
                self._around.faults.seen("assigned_back")
        self._had.update(committed)
        self._say("is given", committed)
        self._inner.assigned(committed)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._around.faults.seen("revoked")
        self._say("must give back", partitions)
        try:
            self._inner.revoked(partitions)
        finally:
            self._forget(partitions)
            self._say("has given back", partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self._around.faults.seen("lost")
        self._say("has lost", partitions)
        self._forget(partitions)
        self._inner.lost(partitions)

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        for at in partitions:
            self._holdings.pop(at, None)

    def _say(self, what: str, partitions: Collection[TopicPartition]) -> None:
        told = f"{self._around.name} {what} {{}}"
        self._around.oracle.note(told, ", ".join(map(str, partitions)))


class FaultyConsumer:
    def __init__(
        self,
        inner: MemoryConsumer,
        around: Surroundings,
        holdings: dict[TopicPartition, Holding],
    ) -> None:
        self.inner = inner
        self._around = around
        self._holdings = holdings
        self._started: deque[tuple[str, dict[TopicPartition, CommittedOffset]]] = deque()
        self._answers: deque[CommitResult] = deque()

    @property
    def member_id(self) -> str:
        member = self.inner._member
        return member.id if member else ""

    def subscribe(self, topics: Collection[str], listener: Rebalance) -> None:
        self.inner.subscribe(topics, WatchedListener(listener, self._around, self._holdings))

    def assign(self, positions: Mapping[TopicPartition, Offset]) -> None:
        self.inner.assign(positions)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self.inner.assignment

    def poll(
        self, timeout_seconds: float, max_records: int = 500, max_bytes: int = 8 * 2**20
    ) -> list[Record]:
        around = self._around
        around.may_crash()
        self._fail("poll_unavailable")
        found = self.inner.poll(0, max_records, max_bytes)
        records = [record for record in found if record.headers[0][0] != GAP]
        if len(found) > len(records):
            around.faults.seen("gap")
        for at in {record.at for record in records}:
            of_one = [record for record in records if record.at == at]
            first, last = of_one[0].offset, of_one[-1].offset
            around.oracle.note(f"{around.name} polls {{}} {{}} to {{}}", at, first, last)
            around.oracle.delivers(self._holdings[at], of_one)
        if not records:
            around.clock.advance(timeout_seconds)
        return records

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.inner.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.inner.resume(partitions)

    def seek(self, partition: TopicPartition, offset: Offset) -> None:
        self._around.oracle.note(f"{self._around.name} seeks {{}} to {{}}", partition, offset)
        self.inner.seek(partition, offset)
        self._around.oracle.seeks(self._holdings[partition], offset)

    def position(self, partition: TopicPartition) -> Offset:
        return self.inner.position(partition)

    def at_end(self, partition: TopicPartition) -> bool:
        return self.inner.at_end(partition)

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        self._fail("start_unavailable")
        return self.inner.watermarks(partition)

    def offset_for_time(self, partition: TopicPartition, timestamp_ms: int) -> Offset:
        self._fail("start_unavailable")
        return self.inner.offset_for_time(partition, timestamp_ms)

    def committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffset | None]:
        self._fail("start_unavailable")
        return self.inner.committed(partitions)

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """After those that were started before it."""
        self._around.may_crash()
        while self._started:
            self._answers.append(self._answer(*self._started.popleft()))
        self._fail("commit_failed")
        if failures := self._answer(self.member_id, offsets).failures:
            raise CommitFailed(failures)

    def start_commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._around.may_crash()
        self._started.append((self.member_id, dict(offsets)))

    def finished_commits(self) -> list[CommitResult]:
        finished: list[CommitResult] = []
        while self._answers and not self._around.faults.hit("commit_late"):
            finished.append(self._answers.popleft())
        while self._started and not self._around.faults.hit("commit_late"):
            self._answers.append(self._answer(*self._started.popleft()))
        return finished

    def close(self) -> None:
        self.inner.close()

    def _answer(
        self, member_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> CommitResult:
        """A member that was expelled meanwhile is another one, even if it is back."""
        if member_id != self.member_id:
            return CommitResult(offsets, dict.fromkeys(offsets, Fenced("An older member's.")))
        failures: dict[TopicPartition, ForebayError] = {}
        for at, offset in offsets.items():
            if self._around.faults.hit("commit_failed"):
                failures[at] = unavailable()
            else:
                failures |= self._store(at, offset)
        return CommitResult(offsets, failures)

    def _store(
        self, at: TopicPartition, offset: CommittedOffset
    ) -> dict[TopicPartition, ForebayError]:
        """The broker decides whether it comes from the owner; then the oracle looks at it."""
        stored_before = self.inner.committed([at])[at]
        try:
            self.inner.commit({at: offset})
        except CommitFailed as refused:
            return dict(refused.failures)
        if stored_before is None or stored_before.offset != offset.offset:
            self._around.oracle.commits_to(self._holdings[at], at, offset.offset)
        elif self._holdings[at].checked_to is None:
            self._holdings[at].checked_to = offset.offset
        return {}

    def _fail(self, name: str) -> None:
        if self._around.faults.hit(name):
            raise unavailable()
