"""What every `forebay dlq` command works on: the state file, and who is at work on it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from forebay import bootstrap
from forebay.cli.positions import now_ms
from forebay.cli.session import Session
from forebay.core.errors import Unusable
from forebay.core.failures import writable
from forebay.state.audit_trail import AuditRow, AuditTrail
from forebay.state.port import Database


@contextmanager
def open_state(session: Session) -> Iterator[Database]:
    """The file that the pipeline's process keeps; it is not made here."""
    file = session.settings.state_file
    if not file.exists():
        raise Unusable(
            f"There is no ledger of dead letters here: {file} does not exist. It is kept where "
            f"`forebay run` (or `forebay worker MODULE:PIPELINE dlq-handler`) runs, and nothing "
            f"was done. Go there, or point --dir at that folder."
        )
    database = bootstrap.open_database(file)
    try:
        yield database
    finally:
        database.close()


def actor() -> str:
    return f"uid {os.getuid()}"


@dataclass(frozen=True, slots=True)
class Look:
    """Something that was shown or taken out, not changed."""

    action: str
    target: str
    affected: int
    reason: str = ""


def write_audit(session: Session, database: Database, look: Look) -> None:
    """Durable before anybody sees what it is about."""
    row = AuditRow(
        now_ms(), actor(), look.action, look.target, writable(look.reason), look.affected
    )
    AuditTrail(database).record(row)
    session.emit(
        "audit.action",
        actor=row.actor,
        action=f"dlq.{row.action}",
        target=row.target,
        affected=row.affected,
        reason=row.reason,
    )
