"""What is written down of a replay while it is carried out, so that another process can go on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from forebay.engine.letter_queries import SELECT, letter_from
from forebay.engine.letters import DeadLetter
from forebay.engine.replay_plans import Ask, PlanEntry
from forebay.state.audit_trail import AuditRow, AuditTrail
from forebay.state.port import Database, Transaction

Status: TypeAlias = Literal["planned", "published", "sent", "passed_over", "refused"]


class Claimed(NamedTuple):
    """A letter that this replay alone may send, under this number. `at_ms`: since when."""

    letter: DeadLetter
    replay_number: int
    at_ms: int
    value: bytes | None
    is_edited: bool


class Refusal(NamedTuple):
    letter_id: str
    why: str


@dataclass(slots=True)
class Claims:
    """`published`: acknowledged before, as the ledger shows; only their markers are missing."""

    to_send: list[Claimed] = field(default_factory=list)
    published: list[Claimed] = field(default_factory=list)


class ReplayBook:
    def __init__(self, database: Database, plan_id: str) -> None:
        self._database = database
        self._plan_id = plan_id

    def planned(self) -> list[PlanEntry]:
        return self._entries("planned")

    def published(self) -> list[Claimed]:
        """Acknowledged before a crash, their markers perhaps not."""
        ask = self._database.read
        found = [self._look_up(ask, entry) for entry in self._entries("published")]
        return [claimed for claimed, _ in found if claimed is not None]

    def counts(self) -> dict[str, int]:
        rows = self._database.read(
            "SELECT status, count(*) FROM replay_entries WHERE plan_id = ? GROUP BY status",
            (self._plan_id,),
        )
        return {str(status): int(count or 0) for status, count in rows}

    def passed_over(self) -> list[Refusal]:
        """Entries that were not sent, and why."""
        rows = self._database.read(
            "SELECT letter_id, detail FROM replay_entries "
            "WHERE plan_id = ? AND status IN ('passed_over', 'refused') ORDER BY place",
            (self._plan_id,),
        )
        return [Refusal(str(id), str(detail)) for id, detail in rows]

    def claim(self, entries: Collection[PlanEntry], at_ms: int) -> Claims:
        """Take those that still stand as the plan saw them; whoever claimed first has them."""
        claims = Claims()
        if not entries:
            return claims
        with self._database.transaction() as transaction:
            for entry in entries:
                self._claim_one(transaction, entry, at_ms, claims)
        return claims

    def write(
        self,
        published: Sequence[str] = (),
        sent: Sequence[str] = (),
        refused: Sequence[Refusal] = (),
    ) -> None:
        """Durable on return. Idempotent."""
        if not (published or sent or refused):
            return
        with self._database.transaction() as transaction:
            for id in published:
                self._set(transaction, id, "published")
            for id in sent:
                self._set(transaction, id, "sent")
            for id, why in refused:
                self._give_up(transaction, id, "refused", why)

    def finish(self, at_ms: int) -> None:
        """Says in the audit trail how it ended, once."""
        with self._database.transaction() as transaction:
            ended = transaction.execute(
                "UPDATE replay_plans SET finished_ms = ? WHERE id = ? AND finished_ms IS NULL "
                "RETURNING actor, reason",
                (at_ms, self._plan_id),
            )
            for actor, reason in ended:
                ((sent,),) = transaction.execute(
                    "SELECT count(*) FROM replay_entries WHERE plan_id = ? AND status = 'sent'",
                    (self._plan_id,),
                )
                who, why, count = str(actor), str(reason), int(sent or 0)
                row = AuditRow(at_ms, who, "replay sent", self._plan_id, why, count)
                AuditTrail(self._database).record(row, transaction)

    def _entries(self, status: Status) -> list[PlanEntry]:
        rows = self._database.read(
            "SELECT letter_id, seen_number FROM replay_entries "
            "WHERE plan_id = ? AND status = ? ORDER BY place",
            (self._plan_id, status),
        )
        return [PlanEntry(str(id), int(number or 0)) for id, number in rows]

    def _claim_one(
        self, transaction: Transaction, entry: PlanEntry, at_ms: int, claims: Claims
    ) -> None:
        claimed, holder = self._look_up(transaction.execute, entry)
        verdict = _judge(claimed and claimed.letter, entry, holder, self._plan_id)
        if claimed is None or verdict not in {"send", "published"}:
            self._give_up(transaction, entry.letter_id, "passed_over", verdict)
        elif verdict == "published":
            self._set(transaction, entry.letter_id, "published")
            claims.published.append(claimed)
        elif holder is not None:
            claims.to_send.append(claimed)
        else:
            transaction.execute(
                "INSERT INTO replay_claims (letter_id, replay_number, plan_id, at_ms) "
                "VALUES (?, ?, ?, ?)",
                (entry.letter_id, entry.replay_number, self._plan_id, at_ms),
            )
            claims.to_send.append(claimed._replace(at_ms=at_ms))

    def _look_up(self, ask: Ask, entry: PlanEntry) -> tuple[Claimed | None, str | None]:
        """The letter as it is now, and which replay has claimed it."""
        claim = ask(
            "SELECT plan_id, at_ms FROM replay_claims WHERE letter_id = ? AND replay_number = ?",
            (entry.letter_id, entry.replay_number),
        )
        holder = str(claim[0][0]) if claim else None
        at_ms = int(claim[0][1] or 0) if claim else 0
        letters = ask(f"{SELECT} WHERE id = ?", (entry.letter_id,))
        if not letters:
            return None, holder
        letter = letter_from(letters[0])
        ((is_edited, edited),) = ask(
            "SELECT is_edited, edited_value FROM replay_entries "
            "WHERE plan_id = ? AND letter_id = ?",
            (self._plan_id, entry.letter_id),
        )
        value = edited if is_edited else letter.value
        content = value if isinstance(value, bytes) else None
        return Claimed(letter, entry.replay_number, at_ms, content, bool(is_edited)), holder

    def _set(self, transaction: Transaction, id: str, status: Status, detail: str = "") -> None:
        transaction.execute(
            "UPDATE replay_entries SET status = ?, detail = ? WHERE plan_id = ? AND letter_id = ?",
            (status, detail, self._plan_id, id),
        )

    def _give_up(self, transaction: Transaction, id: str, status: Status, why: str) -> None:
        """And leave the letter to whoever replays it next."""
        self._set(transaction, id, status, why)
        transaction.execute(
            "DELETE FROM replay_claims WHERE plan_id = ? AND letter_id = ?", (self._plan_id, id)
        )


def _judge(letter: DeadLetter | None, entry: PlanEntry, holder: str | None, plan_id: str) -> str:
    """`send`, `published`, or why not."""
    if letter is None:
        return "it is not in the ledger any more"
    if holder not in {None, plan_id}:
        return f"replay {holder} has it"
    if letter.state == "open" and letter.replay_number == entry.seen_number:
        return "send"
    if letter.replay_number == entry.replay_number and letter.replay_id == plan_id:
        return "published"
    happened = "replayed" if letter.replay_number > entry.seen_number else letter.state
    return f"it was {happened} since the plan was made"
