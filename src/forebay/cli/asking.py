"""Nothing is destroyed before a person was told what and how much, and agreed."""

import os
import sys
from dataclasses import dataclass

from forebay.cli.command import DestructiveCommand
from forebay.cli.errors import WrongUse
from forebay.cli.output import remark
from forebay.cli.session import Session


@dataclass(frozen=True, slots=True)
class Deed:
    """`would` reads "would delete topic orders with …", `how_many` counts what is affected."""

    action: str
    target: str
    would: str
    how_many: int


def agreed(command: DestructiveCommand, deed: Deed) -> bool:
    """True to go on. Said on stderr, so that stdout holds results alone."""
    if command.dry_run:
        remark(f"This {deed.would}. Nothing was changed.")
        return False
    if command.yes:
        return True
    if not sys.stdin.isatty():
        raise WrongUse(
            f"This {deed.would}. It asks first, and there is no terminal to ask on: add --yes, or "
            f"--dry-run to look."
        )
    remark(f"This {deed.would}.")
    if _answer("Go on? [y/N] ") in {"y", "yes"}:
        return True
    remark("Nothing was changed.")
    return False


def tell(session: Session, command: DestructiveCommand, deed: Deed) -> None:
    session.emit(
        "audit.action",
        actor=f"uid {os.getuid()}",
        action=deed.action,
        target=deed.target,
        affected=deed.how_many,
        reason=command.reason,
    )


def _answer(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower()
