"""Dead letters as people look at them: one entry, one cause, and what can be done about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from forebay.core import failures
from forebay.core.envelope import AttemptNote, Origin
from forebay.core.errors import Rejected
from forebay.core.markers import EntryState
from forebay.core.records import Headers, Offset

FOREIGN = "foreign"

_WHAT_TO_DO = {
    failures.TRANSIENT: "The world was away: see that it is back, then replay.",
    failures.EXHAUSTED: "The world was away for too long: see that it is back, then replay.",
    failures.CIRCUIT_OPEN: "The service was down for too long: see that it is back, then replay.",
    failures.AUTH: "Grant the access that was refused, then replay.",
    failures.PERMANENT: "Mend what the reason tells and replay, or discard with a reason.",
    failures.UNDECODABLE: "Have the sender mend it, or mend the declared type and replay.",
    failures.TIMEOUT: "Make the function faster or its timeout longer, then replay.",
    failures.KILLER: "It ended its process: mend the function before you replay.",
    failures.NONSENSE: "The function gave back no outcome: mend it, then replay.",
    failures.UNKNOWN: "Read the stack, mend the function, then replay.",
    FOREIGN: "Find who wrote it to this topic; discard with a reason.",
}


class UnknownLetter(Rejected):
    pass


class SeveralLetters(Rejected):
    """`ids` are those that were meant, some of them."""

    def __init__(self, asked: str, ids: Sequence[str]) -> None:
        super().__init__(
            f"{asked} means several dead letters, among them {', '.join(ids)}. Nothing was done. "
            f"Name one by its id."
        )
        self.asked, self.ids = asked, tuple(ids)

    def __reduce__(self) -> tuple[type["SeveralLetters"], tuple[str, tuple[str, ...]]]:
        return type(self), (self.asked, self.ids)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One record that one stage gave up, with everything needed to try it again.

    What the last letter says, and where the entry stands by all that was told since. `attempts`
    are those since the last replay; `history` has them all.
    """

    id: str
    group: str
    pipeline: str
    stage: str
    origin: Origin
    dlq_topic: str
    dlq_partition: int
    dlq_offset: Offset
    trace_id: str | None
    category: str
    reason: str
    error: str
    stack: str
    fingerprint: str
    attempts: int
    accepted_ms: int
    first_failed_ms: int
    failed_ms: int
    history: tuple[AttemptNote, ...]
    key: bytes | None
    value: bytes | None
    headers: Headers
    state: EntryState
    replay_number: int
    replay_id: str
    state_ms: int
    state_by: str
    state_reason: str
    times_dead_lettered: int
    note: str

    @property
    def domain(self) -> str:
        return self.pipeline

    @property
    def what_to_do(self) -> str:
        return what_to_do(self.category)


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterFilter:
    """All that is given must hold. `topic` is the origin's or the dead letters' own.

    Times are of the last failure, from `since_ms` up to and without `until_ms`; `cause` is the
    beginning of a fingerprint; `text` stands anywhere in reason, key or value, whatever its case.
    """

    ids: tuple[str, ...] = ()
    pipeline: str | None = None
    stage: str | None = None
    topic: str | None = None
    key: bytes | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    category: str | None = None
    cause: str | None = None
    text: str | None = None
    state: EntryState | None = None


class Page(NamedTuple):
    """`total` counts what the filter matches, not what is shown."""

    items: list[DeadLetter]
    total: int


@dataclass(frozen=True, slots=True)
class Cause:
    """Entries that failed alike. `entries` are all of them, `open` those still to be decided."""

    fingerprint: str
    reason: str
    category: str
    pipeline: str
    stage: str
    open: int
    entries: int
    first_ms: int
    last_ms: int

    @property
    def what_to_do(self) -> str:
        return what_to_do(self.category)


def what_to_do(category: str) -> str:
    return _WHAT_TO_DO.get(category, "Read the reason, then replay, or discard with a reason.")
