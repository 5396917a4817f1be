"""What a person decides of dead letters without replaying them: discard, resolve, note.

A decision is a marker on the letter's own topic; it counts when the ledger has read it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from forebay.broker.port import Producer
from forebay.core.errors import ForebayError, Full, InvalidRequest
from forebay.core.failures import writable
from forebay.core.markers import Marker, mark
from forebay.core.records import Record
from forebay.engine.letters import DeadLetter
from forebay.state.audit_trail import AuditRow, AuditTrail
from forebay.state.port import Database

DecisionKind: TypeAlias = Literal["discarded", "resolved", "note"]

_ACTIONS: dict[DecisionKind, str] = {"discarded": "discard", "resolved": "resolve", "note": "note"}
_IDS_TOLD_MAX = 20
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Decision:
    """A note's text is its reason."""

    kind: DecisionKind
    actor: str
    reason: str
    at_ms: int


class Decided(NamedTuple):
    """`passed_over` were resolved or discarded already."""

    marked: list[DeadLetter]
    passed_over: list[DeadLetter]


def decide(
    database: Database, producer: Producer, letters: Sequence[DeadLetter], decision: Decision
) -> Decided:
    """Acknowledged on return. The audit row is there before the first marker. May repeat.

    Blocking. Raises what the producer said of the first marker that was not stored.
    """
    _check(decision)
    marked = [letter for letter in letters if _may_decide(letter, decision)]
    passed_over = [letter for letter in letters if not _may_decide(letter, decision)]
    if marked:
        AuditTrail(database).record(_audit_row(marked, decision))
        _send_all(producer, [_marker(letter, decision) for letter in marked])
    return Decided(marked, passed_over)


def _check(decision: Decision) -> None:
    action = _ACTIONS[decision.kind]
    if not decision.reason.strip():
        raise InvalidRequest(f"To {action} dead letters needs a reason. Nothing was done.")
    if not decision.actor.strip():
        raise InvalidRequest(f"To {action} dead letters needs a name. Nothing was done.")


def _may_decide(letter: DeadLetter, decision: Decision) -> bool:
    return decision.kind == "note" or letter.state in {"open", "replaying"}


def _marker(letter: DeadLetter, decision: Decision) -> Record:
    marker = Marker(
        letter.id,
        letter.group,
        decision.kind,
        letter.replay_number,
        letter.replay_id,
        decision.at_ms,
        writable(decision.actor),
        writable(decision.reason),
    )
    return mark(marker, letter.dlq_topic, letter.key)


def _audit_row(letters: Sequence[DeadLetter], decision: Decision) -> AuditRow:
    told = ", ".join(letter.id for letter in letters[:_IDS_TOLD_MAX])
    more = len(letters) - _IDS_TOLD_MAX
    return AuditRow(
        decision.at_ms,
        writable(decision.actor),
        _ACTIONS[decision.kind],
        f"{told} and {more} more" if more > 0 else told,
        writable(decision.reason),
        len(letters),
    )


def _send_all(producer: Producer, records: Sequence[Record]) -> None:
    failed: list[ForebayError] = []
    for record in records:
        while not _took(producer, record):
            failed += _reported(producer)
    while producer.outstanding:
        failed += _reported(producer)
    if failed:
        raise failed[0]


def _took(producer: Producer, record: Record) -> bool:
    try:
        producer.send(record)
    except Full:
        return False
    return True


def _reported(producer: Producer) -> list[ForebayError]:
    return [report.error for report in producer.poll(_POLL_SECONDS) if report.error is not None]
