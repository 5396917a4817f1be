"""Tries dead letters again: what succeeds leaves the file, what failed too often leaves it too."""

import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forebay.core.clock import Clock
from forebay.core.failures import UNKNOWN, Failure
from forebay.core.records import Record
from forebay.engine.csv_files import cells
from forebay.engine.csv_values import as_lines, iso_time
from forebay.engine.letter_rows import FiledLetter, letter_in
from forebay.mods.kafka_consumer.calls import Attempt, Failures, place_of
from forebay.mods.kafka_consumer.dlq_file import DlqFile, Snapshot, add_rows
from forebay.mods.kafka_consumer.messages import text_of

STORE_SECONDS = 10.0
_TAKEN_OUT = b""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message. It may have several rows: it was read again after a crash, and failed again."""

    letter: FiledLetter
    rows: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Plan:
    """`hopeless` were tried often enough; `unreadable` rows were cut or changed, and stay."""

    tried: Sequence[Entry]
    hopeless: Sequence[Entry]
    unreadable: int
    repeated: int


@dataclass(slots=True)
class Tally:
    """`moved_away` are rows that were settled, but had left the file meanwhile."""

    reprocessed: int = 0
    permanent: int = 0
    moved_away: int = 0
    failures: Failures = field(default_factory=Failures)


def plan_of(snapshot: Snapshot, max_retries: int) -> Plan:
    """The first row of a message says where it stands in line, the highest count how often."""
    found: dict[object, list[tuple[FiledLetter, bytes]]] = defaultdict(list)
    unreadable = 0
    for row in snapshot.rows:
        letter = letter_in(snapshot.columns, cells(row))
        if letter is None:
            unreadable += 1
        else:
            found[_identity(letter.record)].append((letter, row))
    entries = [_entry(pairs) for pairs in found.values()]
    return Plan(
        [entry for entry in entries if entry.letter.retry_count < max_retries],
        [entry for entry in entries if entry.letter.retry_count >= max_retries],
        unreadable,
        sum(len(entry.rows) - 1 for entry in entries),
    )


class Reprocessing:
    """What is settled is stored every few seconds, and when it ends however it ends."""

    def __init__(self, file: DlqFile, snapshot: Snapshot, permanent: Path, clock: Clock) -> None:
        self.tally = Tally()
        self._file = file
        self._snapshot = snapshot
        self._permanent = permanent
        self._clock = clock
        self._settled: dict[bytes, list[bytes]] = defaultdict(list)
        self._stored_at = clock.monotonic()

    def set_aside(self, hopeless: Sequence[Entry]) -> None:
        """They are in the other file before they leave this one."""
        if not hopeless:
            return
        add_rows(self._permanent, self._snapshot.head, [_newest(entry) for entry in hopeless])
        for entry in hopeless:
            self._settle(entry, _TAKEN_OUT)
        self.tally.permanent += len(hopeless)
        self._store()

    def try_all(
        self, entries: Sequence[Entry], attempt: Attempt, before_each: Callable[[int], None]
    ) -> None:
        try:
            for number, entry in enumerate(entries):
                before_each(number)
                self._try(entry, attempt)
                if self._clock.monotonic() - self._stored_at >= STORE_SECONDS:
                    self._store()
        finally:
            self._store()

    def _try(self, entry: Entry, attempt: Attempt) -> None:
        begun = time.perf_counter()
        error = attempt(entry.letter.record)
        took_ms = round((time.perf_counter() - begun) * 1000, 3)
        if error is None:
            self.tally.reprocessed += 1
            self._settle(entry, _TAKEN_OUT)
            return
        failure = _failure(error)
        place = place_of(entry.letter.record)
        self.tally.failures.add(f"{place}: {failure.error}: {failure.reason}")
        self._settle(entry, self._failed_again(entry, failure, took_ms))

    def _failed_again(self, entry: Entry, failure: Failure, took_ms: float) -> bytes:
        columns = self._snapshot.columns
        row = dict(zip(columns, cells(_newest(entry)), strict=True)) | {
            "timestamp": iso_time(round(self._clock.now() * 1000)),
            "error_type": failure.error,
            "error_message": failure.reason,
            "stack_trace": failure.stack,
            "processing_time_ms": str(took_ms),
            "retry_count": str(entry.letter.retry_count + 1),
        }
        return as_lines([list(row.values())], "surrogateescape")

    def _settle(self, entry: Entry, replacement: bytes) -> None:
        first, *others = entry.rows
        self._settled[first].append(replacement)
        for row in others:
            self._settled[row].append(_TAKEN_OUT)

    def _store(self) -> None:
        self._stored_at = self._clock.monotonic()
        if self._settled:
            self.tally.moved_away += self._file.replace(self._settled)
            self._settled.clear()


def _identity(record: Record) -> object:
    """A topic that was made anew has the same offsets again, with something else in them."""
    return record.topic, record.partition, record.offset, record.key, record.value


def _entry(pairs: Sequence[tuple[FiledLetter, bytes]]) -> Entry:
    letters = [letter for letter, _ in pairs]
    most = max(letters, key=lambda letter: letter.retry_count)
    return Entry(most, [row for _, row in pairs])


def _newest(entry: Entry) -> bytes:
    return entry.rows[-1]


def _failure(error: BaseException) -> Failure:
    frames = error.__traceback__ and error.__traceback__.tb_next
    stack = "".join(traceback.format_exception(type(error), error, frames))
    return Failure(UNKNOWN, text_of(error), type(error).__name__, stack)
