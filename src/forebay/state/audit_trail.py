"""Who did what, to what, why: rows that are only ever added."""

from typing import NamedTuple

from forebay.state.port import Database, Transaction


class AuditRow(NamedTuple):
    """`affected`: how many things the action was about."""

    at_ms: int
    actor: str
    action: str
    target: str
    reason: str
    affected: int


class AuditTrail:
    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, row: AuditRow, transaction: Transaction | None = None) -> None:
        """In the transaction of what the action changes, or durable on return."""
        if transaction is None:
            with self._database.transaction() as own:
                return self.record(row, own)
        transaction.execute(
            "INSERT INTO audit_trail (number, at_ms, actor, action, target, reason, affected) "
            "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ? FROM audit_trail",
            row,
        )
        return None

    def rows(self, *, target: str | None = None, limit: int = 100) -> list[AuditRow]:
        """The newest first; of one target or of all."""
        found = self._database.read(
            "SELECT at_ms, actor, action, target, reason, affected FROM audit_trail "
            "WHERE target = coalesce(?, target) ORDER BY number DESC LIMIT ?",
            (target, limit),
        )
        return [
            AuditRow(
                int(at_ms or 0), str(actor), str(action), str(about), str(why), int(count or 0)
            )
            for at_ms, actor, action, about, why, count in found
        ]
