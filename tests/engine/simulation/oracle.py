"""Knows what must hold, from what crosses the broker's port and what handlers did.

It asks the engine nothing, but for counters that must be zero when nothing is held.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from forebay.core.envelope import read_envelope, user_headers
from forebay.core.records import Offset, Record, TopicPartition
from forebay.engine.work import Work

SERIAL = "serial"
OUTPUTS = frozenset({"out", "nowhere"})
HOOK = b"hook:"
FAILED = frozenset({"retry", "dead", "nothing"})


class Violation(AssertionError):
    """An invariant broke; the message names it."""


@dataclass(slots=True)
class Entry:
    """One record on a topic that the stage reads. A record that comes back is another entry."""

    record: Record
    attempt: int
    was_trimmed: bool = False


@dataclass(slots=True)
class Call:
    """One run of the handler. `unacknowledged`: what it put out and the broker has not stored."""

    number: int
    serial: int
    work: Work
    verdict: str
    is_retried: bool = False
    counts: bool = True
    unacknowledged: set[bytes] = field(default_factory=set)
    has_returned: bool = False


@dataclass(slots=True)
class Holding:
    """A partition in one member's hands under one assignment."""

    checked_to: Offset | None
    delivered: dict[Offset, "Delivery"] = field(default_factory=dict)


class Delivery(NamedTuple):
    """The n-th of one entry, to whomever."""

    serial: int
    number: int


class Oracle:
    def __init__(self, low_of: Callable[[TopicPartition], Offset]) -> None:
        self._low_of = low_of
        self.trail: deque[tuple[str, tuple[object, ...]]] = deque(maxlen=40)
        self.entries: dict[int, Entry] = {}
        self.at: dict[tuple[TopicPartition, Offset], int] = {}
        self.calls: dict[int, Call] = {}
        self.calls_of: dict[int, list[Call]] = defaultdict(list)
        self.parked: set[int] = set()
        self._parked_as: dict[tuple[int, int], set[str]] = defaultdict(set)
        self.durable: set[int] = set()
        self.committed: dict[TopicPartition, Offset] = {}
        self.expired: list[tuple[TopicPartition, Offset, Offset]] = []
        self.deliveries: Counter[int] = Counter()
        self.running: dict[tuple[object, ...], Call] = {}
        self.commits = 0

    def note(self, text: str, *values: object) -> None:
        self.trail.append((text, values))

    def told(self) -> str:
        return "\n".join(text.format(*values) for text, values in self.trail)

    def require(self, holds: object, rule: str, *values: object) -> None:
        if not holds:
            raise Violation(rule.format(*values))

    # What happens on the topics that the stage reads.

    def stored(self, serial: int, record: Record, attempt: int) -> None:
        self.entries[serial] = Entry(record, attempt)
        self.at[record.at, record.offset] = serial

    def trimmed(self, at: TopicPartition, low: Offset) -> None:
        self.note("retention trims {} to {}", at, low)
        for serial, entry in self.entries.items():
            if entry.record.at == at and entry.record.offset < low and not self.is_durable(serial):
                entry.was_trimmed = True

    def delivers(self, holding: Holding, records: list[Record]) -> None:
        for record in records:
            serial = serial_of(record)
            self.deliveries[serial] += 1
            holding.delivered[record.offset] = Delivery(serial, self.deliveries[serial])

    def seeks(self, holding: Holding, offset: Offset) -> None:
        """What was delivered from there on comes again."""
        kept = {at: known for at, known in holding.delivered.items() if at < offset}
        holding.delivered = kept

    # What handlers do.

    def begins(self, call: Call, lane: tuple[object, ...] | None) -> None:
        """At most one of a lane runs, unless the one before was given up for good."""
        self.calls[call.number] = call
        self.calls_of[call.serial].append(call)
        if lane is None or call.work.held.is_fenced:
            return
        before = self.running.get(lane)
        if before is not None:
            work, offset = before.work, before.work.record.offset
            is_over = before.has_returned or work.is_fenced or work.held.is_fenced
            self.require(is_over, "L3: two handlers run for {}", lane)
            is_in_order = work.held is not call.work.held or offset < call.work.record.offset
            self.require(is_in_order, "L3: {} runs after {}", call.work.record.offset, offset)
        self.running[lane] = call

    # What is sent and what becomes durable.

    def sends(self, holdings: dict[TopicPartition, Holding], record: Record) -> int:
        """Gives the delivery that the record comes of, for its acknowledgement."""
        call = self._call_of(record)
        serial = call.serial if call else _serial_in(record)
        source = self.entries[serial].record
        holding = holdings.get(source.at)
        delivery = holding and holding.delivered.get(source.offset)
        self.require(delivery, "B4: {} of {} is sent after its fence", record.topic, source.at)
        if call is not None:
            is_late = call.work.is_fenced
            self.require(not is_late, "T7: the late result of call {} is sent", call.number)
        elif record.topic not in OUTPUTS:
            self._check_parked(source, record)
        return delivery.number

    def acknowledged(self, record: Record, delivery: int) -> None:
        call = self._call_of(record)
        if call is not None:
            call.unacknowledged.discard(record.value or b"")
        elif record.topic not in OUTPUTS:
            self._park(record, delivery)

    def _park(self, record: Record, delivery: int) -> None:
        """One way on for each delivery: never a dead letter that is tried again as well."""
        serial = serial_of(record)
        self.parked.add(serial)
        kinds = self._parked_as[serial, delivery]
        kinds.add("dlq" if record.topic.endswith(".dlq") else "tier")
        place = self.entries[serial].record.at, self.entries[serial].record.offset
        self.require(len(kinds) == 1, "D5: {} is a dead letter and tried again", place)

    def refused(self, record: Record) -> None:
        """An output that can never be stored makes its call a failed one."""
        call = self._call_of(record)
        if call is not None:
            call.unacknowledged.discard(record.value or b"")
            call.verdict = "dead"

    def _check_parked(self, source: Record, record: Record) -> None:
        """R1, D1: as it was read. R9: an attempt is a failed call, nothing else."""
        serial = serial_of(record)
        same = (record.key, record.value) == (source.key, source.value)
        self.require(same, "D1: {} is not what was read", record)
        mine, its = user_headers(source.headers), user_headers(record.headers)
        self.require(mine == its, "R1: the user's headers {} became {}", mine, its)
        envelope = read_envelope(record)
        self.require(envelope, "R1: {} says nothing of its origin", record)
        attempt = self.entries[serial].attempt
        if record.topic.endswith(".dlq"):
            asked = any(c.verdict in FAILED or c.work.is_fenced for c in self.calls_of[serial])
            self.require(asked, "D2: nobody asked for {} as a dead letter", record)
            expected = {attempt}
        else:
            expected = {attempt + call.counts for call in self.calls_of[serial] if call.is_retried}
        assert envelope is not None
        right = envelope.attempt in expected
        self.require(right, "R9: attempt {} is none of {}", envelope.attempt, expected)

    def _call_of(self, record: Record) -> Call | None:
        """None for what a hook put out, and for what is no output."""
        value = record.value or b""
        if record.topic not in OUTPUTS or value.startswith(HOOK):
            return None
        return self.calls[int(value.split(b":")[0])]

    def is_durable(self, serial: int) -> bool:
        if serial in self.durable:
            return True
        is_parked = serial in self.parked
        for call in self.calls_of[serial]:
            has_failed = call.verdict in FAILED or call.work.is_fenced
            is_stored = not call.unacknowledged or call.work.is_fenced
            if is_stored and (is_parked or (call.has_returned and not has_failed)):
                self.durable.add(serial)
                return True
        return False

    # What is committed.

    def commits_to(self, holding: Holding, at: TopicPartition, offset: Offset) -> None:
        """T1: nothing below a commit is open. Called with what the broker is about to store."""
        self.commits += 1
        self.note("the broker stores {} of {}", offset, at)
        before = self.committed.get(at, 0)
        self.require(offset >= before, "T3: {} goes back from {} to {}", at, before, offset)
        if holding.checked_to is None:
            holding.checked_to = min(self._low_of(at), offset)
        for position in range(holding.checked_to, offset):
            serial = self.at.get((at, position))
            if serial is not None and not self.is_durable(serial):
                self._check_expired(holding, at, position)
        holding.checked_to = offset
        self.committed[at] = offset

    def _check_expired(self, holding: Holding, at: TopicPartition, position: Offset) -> None:
        was_delivered = position in holding.delivered
        self.require(not was_delivered, "T1: {} is committed past {}, still open", at, position)
        is_gone = position < self._low_of(at)
        self.require(is_gone, "T2: {} is committed past {}, never delivered", at, position)
        is_told = any(place == at and first <= position < end for place, first, end in self.expired)
        self.require(is_told, "R0: {} of {} expired and nobody was told", position, at)

    def lost(self) -> list[int]:
        """Entries without a durable outcome that retention did not take first."""
        return [
            serial
            for serial, entry in self.entries.items()
            if not self.is_durable(serial) and not entry.was_trimmed
        ]


def serial_of(record: Record) -> int:
    return int(next(value for name, value in record.headers if name == SERIAL) or b"")


def _serial_in(record: Record) -> int:
    value = record.value or b""
    if record.topic in OUTPUTS and value.startswith(HOOK):
        return int(value.removeprefix(HOOK))
    return serial_of(record)
