"""Where an entry of the ledger stands, by everything that its topic told of it.

Tellings are a set: their order and repeats change nothing.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import orjson

from forebay.core.envelope import AttemptNote
from forebay.core.markers import RANKS, STATES, EntryState
from forebay.state.port import Row, Value

DEAD_LETTERED = "dead_lettered"
NOTE = "note"

TELLING_COLUMNS = (
    *("letter_id", "digest", "kind", "replay_number", "replay_id", "at_ms", "actor", "reason"),
    *("first_failed_ms", "history"),
)
STANDING_COLUMNS = (
    *("state", "replay_number", "replay_id", "state_ms", "state_by", "state_reason"),
    *("first_failed_ms", "history", "times_dead_lettered", "note"),
)


@dataclass(frozen=True, slots=True)
class Telling:
    """Once a dead letter, or a marker. A letter's `reason` is its note."""

    letter_id: str
    kind: str
    replay_number: int = 0
    replay_id: str = ""
    at_ms: int = 0
    actor: str = ""
    reason: str = ""
    first_failed_ms: int = 0
    history: tuple[AttemptNote, ...] = ()

    @property
    def weight(self) -> tuple[int, int]:
        rank = RANKS["open_again"] if self.kind == DEAD_LETTERED else RANKS[self.kind]
        return self.replay_number, rank

    @property
    def row(self) -> Row:
        said = (self.kind, self.replay_number, self.replay_id, self.at_ms, self.actor, self.reason)
        rest = (self.first_failed_ms, write_history(self.history))
        digest = hashlib.sha256(repr((said, rest)).encode()).hexdigest()[:20]
        return self.letter_id, digest, *said, *rest


@dataclass(frozen=True, slots=True)
class Standing:
    state: EntryState
    replay_number: int
    replay_id: str
    state_ms: int
    state_by: str
    state_reason: str
    first_failed_ms: int
    history: tuple[AttemptNote, ...]
    times_dead_lettered: int
    note: str

    @property
    def row(self) -> Row:
        decided = (self.state, self.replay_number, self.replay_id, self.state_ms)
        failed = (self.first_failed_ms, write_history(self.history), self.times_dead_lettered)
        return *decided, self.state_by, self.state_reason, *failed, self.note


def stand(tellings: Collection[Telling]) -> Standing | None:
    """None as long as no letter was among them."""
    letters = [telling for telling in tellings if telling.kind == DEAD_LETTERED]
    if not letters:
        return None
    deciding = [telling for telling in tellings if telling.kind != NOTE]
    last = max(deciding, key=lambda telling: (telling.weight, telling.at_ms, telling.row[1:3]))
    is_letter = last.kind == DEAD_LETTERED
    return Standing(
        state="open" if is_letter else STATES[last.kind],
        replay_number=last.replay_number,
        replay_id=last.replay_id,
        state_ms=last.at_ms,
        state_by=last.actor,
        state_reason="" if is_letter else last.reason,
        first_failed_ms=min(telling.first_failed_ms for telling in letters),
        history=_all_attempts(letters),
        times_dead_lettered=len({telling.replay_number for telling in letters}),
        note=_last_note(tellings),
    )


def telling_from(row: Row) -> Telling:
    letter_id, _, kind, number, replay_id, at_ms, actor, reason, first_failed_ms, history = row
    return Telling(
        str(letter_id),
        str(kind),
        int(number or 0),
        str(replay_id),
        int(at_ms or 0),
        str(actor),
        str(reason),
        int(first_failed_ms or 0),
        read_history(history),
    )


def write_history(history: Collection[AttemptNote]) -> str:
    notes = [[note.attempt, note.at_ms, note.category, note.reason] for note in history]
    return orjson.dumps(notes).decode()


def read_history(written: Value) -> tuple[AttemptNote, ...]:
    return tuple(AttemptNote(*note) for note in orjson.loads(str(written)))


def _all_attempts(letters: Collection[Telling]) -> tuple[AttemptNote, ...]:
    notes = {note for letter in letters for note in letter.history}
    return tuple(sorted(notes, key=lambda n: (n.at_ms, n.attempt, n.category, n.reason)))


def _last_note(tellings: Collection[Telling]) -> str:
    notes = [
        (telling.at_ms, telling.reason)
        for telling in tellings
        if telling.kind in {NOTE, DEAD_LETTERED} and telling.reason
    ]
    return max(notes, default=(0, ""))[1]
