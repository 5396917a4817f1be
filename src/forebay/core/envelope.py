"""What Forebay writes into the headers of records that travel between its own topics.

Key, value and the user's headers stay as they were. Our headers are honoured only on topics that
Forebay owns; on records from outside they are taken off.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import orjson

from forebay.core.failures import HEADER_STACK_LENGTH_MAX, Failure
from forebay.core.records import Header, Headers, Offset, Record, TopicPartition

PREFIX = "forebay-"
HISTORY_MAX = 8
_HISTORY_REASON_MAX = 160
_NUMBER_MAX = 2**53


@dataclass(frozen=True, slots=True)
class Origin:
    """The record as its stage first met it."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class AttemptNote:
    attempt: int
    at_ms: int
    category: str
    reason: str


@dataclass(frozen=True, slots=True)
class Envelope:
    """`attempt`: in a tier and after it the one to come, in a dead letter the last one made.

    `id` is the same for every attempt and replay of one record in one stage. `uncounted_since_ms`
    is set while tries do not count (a circuit is open).
    """

    id: str
    group: str
    origin: Origin
    attempt: int = 1
    due_ms: int = 0
    accepted_ms: int = 0
    first_failed_ms: int = 0
    failed_ms: int = 0
    uncounted_since_ms: int = 0
    failure: Failure | None = None
    history: tuple[AttemptNote, ...] = ()
    replay_id: str = ""
    replay_number: int = 0
    note: str = ""

    def failed(self, failure: Failure, now_ms: int, *, attempt: int, due_ms: int = 0) -> "Envelope":
        """As it travels on after a failure."""
        note = AttemptNote(self.attempt, now_ms, failure.category, failure.reason)
        return replace(
            self,
            attempt=attempt,
            due_ms=due_ms,
            first_failed_ms=self.first_failed_ms or now_ms,
            failed_ms=now_ms,
            failure=failure,
            history=_bounded((*self.history, note)),
        )

    def without_stack(self) -> "Envelope":
        failure = self.failure and replace(self.failure, stack="")
        return replace(self, failure=failure)

    def without_history(self) -> "Envelope":
        return replace(self.without_stack(), history=())


def entry_id(group: str, origin: Origin) -> str:
    told = f"{group}\0{origin.topic}\0{origin.partition}\0{origin.offset}\0{origin.timestamp_ms}"
    return hashlib.sha256(told.encode()).hexdigest()[:20]


def first_origin(record: Record) -> Origin:
    return Origin(record.topic, record.partition, record.offset, record.timestamp_ms)


def first_envelope(group: str, record: Record) -> Envelope:
    origin = first_origin(record)
    return Envelope(entry_id(group, origin), group, origin, accepted_ms=record.timestamp_ms)


def user_headers(headers: Headers) -> list[Header]:
    return [header for header in headers if not header[0].startswith(PREFIX)]


def seal(record: Record, envelope: Envelope, extra: Iterable[Header] = ()) -> list[Header]:
    """The headers a record travels with."""
    return [*user_headers(record.headers), *_written(envelope), *extra]


def open_envelope(
    record: Record, group: str, attempts_max: int, delay_ms_max: int
) -> Envelope | None:
    """What one of our own topics says of a record; None where it says nothing we understand.

    Numbers are bounded: a forged attempt or due time changes little.
    """
    ours = {name: value for name, value in record.headers if name.startswith(PREFIX) and value}
    try:
        envelope = _read(ours)
    except (KeyError, ValueError, TypeError):
        return None
    if envelope.group != group:
        return None
    attempt = min(max(envelope.attempt, 1), max(1, attempts_max))
    latest = record.timestamp_ms + 2 * delay_ms_max
    due_ms = envelope.due_ms if 0 <= envelope.due_ms <= latest else latest
    return replace(envelope, attempt=attempt, due_ms=due_ms)


def read_envelope(record: Record) -> Envelope | None:
    """As written, unbounded: for dead letters, which nothing is decided by."""
    ours = {name: value for name, value in record.headers if name.startswith(PREFIX) and value}
    try:
        return _read(ours)
    except (KeyError, ValueError, TypeError):
        return None


def _written(envelope: Envelope) -> list[Header]:
    origin = envelope.origin
    place = [origin.topic, origin.partition, origin.offset, origin.timestamp_ms]
    times = [
        envelope.accepted_ms,
        envelope.first_failed_ms,
        envelope.failed_ms,
        envelope.uncounted_since_ms,
    ]
    headers: list[Header] = [
        (PREFIX + "id", envelope.id.encode()),
        (PREFIX + "group", envelope.group.encode()),
        (PREFIX + "origin", orjson.dumps(place)),
        (PREFIX + "attempt", b"%d" % envelope.attempt),
        (PREFIX + "times", orjson.dumps(times)),
    ]
    if envelope.due_ms:
        headers.append((PREFIX + "due", b"%d" % envelope.due_ms))
    if envelope.failure is not None:
        headers += _written_failure(envelope.failure)
    if envelope.history:
        notes = [[n.attempt, n.at_ms, n.category, n.reason] for n in envelope.history]
        headers.append((PREFIX + "history", orjson.dumps(notes)))
    if envelope.replay_id:
        replay = f"{envelope.replay_number}/{envelope.replay_id}"
        headers.append((PREFIX + "replay", replay.encode()))
    if envelope.note:
        headers.append((PREFIX + "note", _bytes(envelope.note)))
    return headers


def _written_failure(failure: Failure) -> list[Header]:
    texts = {
        "category": failure.category,
        "reason": failure.reason,
        "error": failure.error,
        "stack": failure.stack[-HEADER_STACK_LENGTH_MAX:],
    }
    return [(PREFIX + name, _bytes(text)) for name, text in texts.items() if text]


def _read(ours: dict[str, bytes]) -> Envelope:
    topic, partition, offset, timestamp_ms = orjson.loads(ours[PREFIX + "origin"])
    times = [_number(time) for time in orjson.loads(ours[PREFIX + "times"])]
    accepted_ms, first_failed_ms, failed_ms, uncounted_since_ms = times
    number, _, replay_id = _text(ours, "replay").partition("/")
    return Envelope(
        id=_text(ours, "id") or _missing("id"),
        group=_text(ours, "group"),
        origin=Origin(str(topic), _number(partition), _number(offset), _clamped(timestamp_ms)),
        attempt=_number(ours[PREFIX + "attempt"]),
        due_ms=_number(ours.get(PREFIX + "due", b"0")),
        accepted_ms=accepted_ms,
        first_failed_ms=first_failed_ms,
        failed_ms=failed_ms,
        uncounted_since_ms=uncounted_since_ms,
        failure=_read_failure(ours),
        history=_read_history(ours.get(PREFIX + "history", b"[]")),
        replay_id=replay_id,
        replay_number=_number(number or 0),
        note=_text(ours, "note"),
    )


def _read_failure(ours: dict[str, bytes]) -> Failure | None:
    category = _text(ours, "category")
    if not category:
        return None
    return Failure(category, _text(ours, "reason"), _text(ours, "error"), _text(ours, "stack"))


def _read_history(written: bytes) -> tuple[AttemptNote, ...]:
    notes: Sequence[Sequence[object]] = orjson.loads(written)
    read = tuple(
        AttemptNote(_number(attempt), _number(at_ms), str(category), str(reason))
        for attempt, at_ms, category, reason in notes
    )
    return _bounded(read)


def _bounded(history: tuple[AttemptNote, ...]) -> tuple[AttemptNote, ...]:
    """The first and the last say most."""
    if len(history) > HISTORY_MAX:
        history = (history[0], *history[-(HISTORY_MAX - 1) :])
    return tuple(
        replace(note, reason=note.reason[:_HISTORY_REASON_MAX], category=note.category[:40])
        for note in history
    )


def _number(value: object) -> int:
    number = int(value) if isinstance(value, bytes | str | int) else _missing("number")
    if not -1 <= number <= _NUMBER_MAX:
        raise ValueError(number)
    return number


def _clamped(value: float) -> int:
    """To what JSON and a column can hold: a forged time does not hide its record."""
    return max(-1, min(int(value), 2**63 - 1))


def _missing(name: str) -> NoReturn:
    raise ValueError(name)


def _text(ours: dict[str, bytes], name: str) -> str:
    return ours.get(PREFIX + name, b"").decode("utf-8", "replace")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
