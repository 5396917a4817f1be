"""A replay is a plan made once: which dead letters, as they stood then. Nothing joins it later."""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from forebay.core.errors import InvalidRequest
from forebay.core.failures import writable
from forebay.engine.letter_queries import matching
from forebay.engine.letters import LetterFilter
from forebay.state.audit_trail import AuditRow, AuditTrail
from forebay.state.port import Database, Row, Transaction, Value

REPLAYS_MAX = 5

Ask: TypeAlias = Callable[[str, Sequence[Value]], list[Row]]


class Edit(NamedTuple):
    """The value to send instead of the letter's own."""

    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """Open letters alone are replayed, the oldest failure first.

    Without `force` those that were replayed five times already are left out. An edit is for one
    letter.
    """

    wanted: LetterFilter
    actor: str
    reason: str
    at_ms: int
    limit: int | None = None
    force: bool = False
    edit: Edit | None = None


class PlanEntry(NamedTuple):
    """`seen_number` is the letter's replay number as the plan saw it; its own is one more."""

    letter_id: str
    seen_number: int

    @property
    def replay_number(self) -> int:
        return self.seen_number + 1


@dataclass(frozen=True, slots=True)
class Draft:
    """What a plan would hold. `origins`: how many, by dead-letter topic and topic of origin."""

    entries: tuple[PlanEntry, ...]
    origins: Mapping[tuple[str, str], int]
    oldest_ms: int | None
    needs_force: int


@dataclass(frozen=True, slots=True)
class Plan:
    id: str
    actor: str
    reason: str
    at_ms: int
    entries: tuple[PlanEntry, ...]
    needs_force: int = 0


def draft_plan(database: Database, request: ReplayRequest) -> Draft:
    """What would be replayed. Changes nothing."""
    return _draw(database.read, _checked(request))


def create_plan(database: Database, request: ReplayRequest) -> Plan:
    """Durable on return; carried out by a ReplayRun, as often as that is killed."""
    request = _checked(request)
    with database.transaction() as transaction:
        draft = _draw(transaction.execute, request)
        plan = Plan(
            f"r-{secrets.token_hex(5)}",
            request.actor,
            request.reason,
            request.at_ms,
            draft.entries,
            draft.needs_force,
        )
        _store(transaction, plan, request.edit)
        action = "replay" if request.edit is None else "edit and replay"
        row = AuditRow(plan.at_ms, plan.actor, action, plan.id, plan.reason, len(plan.entries))
        AuditTrail(database).record(row, transaction)
    return plan


def load_plan(database: Database, id: str) -> Plan:
    rows = database.read("SELECT actor, reason, at_ms FROM replay_plans WHERE id = ?", (id,))
    if not rows:
        raise InvalidRequest(f"There is no replay {id}. Nothing was sent. Look at the audit trail.")
    ((actor, reason, at_ms),) = rows
    entries = database.read(
        "SELECT letter_id, seen_number FROM replay_entries WHERE plan_id = ? ORDER BY place", (id,)
    )
    found = tuple(PlanEntry(str(letter), int(number or 0)) for letter, number in entries)
    return Plan(id, str(actor), str(reason), int(at_ms or 0), found)


def unfinished_plans(database: Database) -> list[str]:
    """Replays that were begun and not ended, the oldest first: run them again."""
    rows = database.read(
        "SELECT id FROM replay_plans WHERE finished_ms IS NULL ORDER BY at_ms, id", ()
    )
    return [str(id) for (id,) in rows]


def cancel_plan(database: Database, id: str, actor: str, reason: str, at_ms: int) -> int:
    """Leave what was not sent to other replays; says how many. What was sent stays sent.

    End the process that carries it out before: it would go on with what it has in hand.
    """
    with database.transaction() as transaction:
        left = transaction.execute(
            "UPDATE replay_entries SET status = 'passed_over', detail = 'the replay was cancelled' "
            "WHERE plan_id = ? AND status = 'planned' RETURNING letter_id",
            (id,),
        )
        transaction.execute_many(
            "DELETE FROM replay_claims WHERE plan_id = ? AND letter_id = ?",
            [(id, letter_id) for (letter_id,) in left],
        )
        row = AuditRow(at_ms, actor, "cancel replay", id, reason, len(left))
        AuditTrail(database).record(row, transaction)
    return len(left)


def original_value(database: Database, plan_id: str, letter_id: str) -> Edit | None:
    """What an edited letter held before; None where that replay edited nothing."""
    rows = database.read(
        "SELECT original_value FROM replay_entries "
        "WHERE plan_id = ? AND letter_id = ? AND is_edited = 1",
        (plan_id, letter_id),
    )
    if not rows:
        return None
    ((value,),) = rows
    return Edit(value if isinstance(value, bytes) else None)


def _checked(request: ReplayRequest) -> ReplayRequest:
    if request.wanted.state not in {None, "open"}:
        raise InvalidRequest(
            f"Only open dead letters can be replayed, not {request.wanted.state} ones. Nothing was "
            f"planned. Leave the state out."
        )
    if not request.actor.strip():
        raise InvalidRequest("A replay needs the name of who asks for it. Nothing was planned.")
    if request.limit is not None and request.limit < 1:
        raise InvalidRequest("A limit is at least 1. Nothing was planned.")
    return replace(
        request,
        wanted=replace(request.wanted, state="open"),
        actor=writable(request.actor),
        reason=writable(request.reason),
    )


def _draw(ask: Ask, request: ReplayRequest) -> Draft:
    condition, values = matching(request.wanted)
    tried = 0
    if not request.force:
        tried = _count(ask, f"{condition} AND replay_number >= {REPLAYS_MAX}", values)
        condition = f"{condition} AND replay_number < {REPLAYS_MAX}"
    statement = (
        "SELECT id, replay_number, dlq_topic, origin_topic, failed_ms FROM dead_letters "  # noqa: S608 - constants
        f"WHERE {condition} ORDER BY failed_ms, id"
    )
    if request.limit is not None:
        statement, values = f"{statement} LIMIT ?", [*values, request.limit]
    rows = ask(statement, values)
    _check_edit(request, len(rows))
    return Draft(
        entries=tuple(PlanEntry(str(id), int(number or 0)) for id, number, *_ in rows),
        origins=Counter((str(letters), str(origin)) for _, _, letters, origin, _ in rows),
        oldest_ms=int(rows[0][-1] or 0) if rows else None,
        needs_force=tried,
    )


def _check_edit(request: ReplayRequest, count: int) -> None:
    if request.edit is not None and count != 1:
        raise InvalidRequest(
            f"An edited value is for one dead letter, and {count} were meant. Nothing was planned. "
            f"Name the letter by its id."
        )


def _count(ask: Ask, condition: str, values: Sequence[Value]) -> int:
    ((count,),) = ask(f"SELECT count(*) FROM dead_letters WHERE {condition}", values)  # noqa: S608 - constants
    return int(count or 0)


def _store(transaction: Transaction, plan: Plan, edit: Edit | None) -> None:
    transaction.execute(
        "INSERT INTO replay_plans (id, actor, reason, at_ms, entries) VALUES (?, ?, ?, ?, ?)",
        (plan.id, plan.actor, plan.reason, plan.at_ms, len(plan.entries)),
    )
    transaction.execute_many(
        "INSERT INTO replay_entries "
        "(plan_id, letter_id, place, seen_number, status, detail, is_edited) "
        "VALUES (?, ?, ?, ?, 'planned', '', 0)",
        [
            (plan.id, entry.letter_id, at, entry.seen_number)
            for at, entry in enumerate(plan.entries)
        ],
    )
    if edit is not None:
        transaction.execute(
            "UPDATE replay_entries SET is_edited = 1, edited_value = ?, original_value = "
            "(SELECT record_value FROM dead_letters WHERE id = letter_id) WHERE plan_id = ?",
            (edit.value, plan.id),
        )
