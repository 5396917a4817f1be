"""forebay dlq resolve, discard and note: what a person decides without replaying."""

from dataclasses import dataclass, replace
from typing import Annotated

from typer import Argument

from forebay.cli.asking import Deed, agreed, tell
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command, DestructiveCommand
from forebay.cli.dlq_choice import Choice, LetterId, OptionalLetterId, every_letter
from forebay.cli.dlq_progress import LongWork
from forebay.cli.dlq_rows import Style, line_of, table_of
from forebay.cli.dlq_state import actor, open_state
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_table, remark
from forebay.cli.positions import now_ms
from forebay.cli.session import Session
from forebay.engine.decisions import Decision, DecisionKind, decide
from forebay.engine.ledger import Ledger
from forebay.engine.letters import DeadLetter, LetterFilter
from forebay.state.port import Database

AT_ONCE = 1_000
SHOWN_MAX = 100


@dataclass(frozen=True, kw_only=True)
class DecideLetters(Choice, DestructiveCommand):
    def decide(self, id: str | None, kind: DecisionKind, action: str) -> int:
        if not self.dry_run and not (self.reason or "").strip():
            raise WrongUse(f'To {action} dead letters needs a reason: --reason "…".')
        if id is None and self.wanted() == LetterFilter():
            raise WrongUse(
                f"Which dead letters are meant to be {kind}? Name an ID, or a filter such as "
                f"--cause or --state open."
            )
        session = self.session()
        with open_state(session) as database:
            letters = self._chosen(Ledger(database), id)
            deed = self._deed(letters, id, action)
            if not letters:
                remark(f"No dead letter that is open or replaying matches. Nothing was {kind}.")
                return self._show(letters, FOUND_A_PROBLEM if id else DONE)
            if not agreed(self, deed):
                return self._show(letters, DONE) if self.dry_run else FOUND_A_PROBLEM
            decision = Decision(kind, actor(), self.reason or "", now_ms())
            _carry_out(session, database, letters, decision)
            tell(session, self, deed)
        remark(f"{len(letters):,} {kind}. The ledger shows it when it has read their markers.")
        return self._show(letters, DONE)

    def _chosen(self, ledger: Ledger, id: str | None) -> list[DeadLetter]:
        found = every_letter(ledger, self.wanted_or(ledger, id), self.limit)
        return [letter for letter in found if letter.state in {"open", "replaying"}]

    def _deed(self, letters: list[DeadLetter], id: str | None, action: str) -> Deed:
        count = len(letters)
        what = f"{count:,} dead letter{'s' if count != 1 else ''}"
        return Deed(
            action=f"dlq.{action}",
            target=id or self.told,
            would=f"would {action} {what} ({id or self.told})",
            how_many=count,
        )

    def _show(self, letters: list[DeadLetter], code: int) -> int:
        style = Style(now_ms(), self.as_json)
        lines = [line_of(letter, style) for letter in letters[:SHOWN_MAX]]
        table = table_of(lines, len(letters), as_json=self.as_json)
        facts = {**table.facts, "dry_run": self.dry_run}
        if self.as_json or lines:
            print_table(replace(table, facts=facts), as_json=self.as_json, empty="")
        return code


def _carry_out(
    session: Session, database: Database, letters: list[DeadLetter], decision: Decision
) -> None:
    """Some at a time, each with its audit row: what was marked stays marked if the rest fails."""
    with session.broker() as broker, LongWork("marked", len(letters)) as work:
        producer = broker.producer()
        for at in range(0, len(letters), AT_ONCE):
            decide(database, producer, letters[at : at + AT_ONCE], decision)
            if work.is_due:
                work.show(min(at + AT_ONCE, len(letters)))
        producer.close()


@dataclass(frozen=True)
class Resolve(DecideLetters):
    id: OptionalLetterId = None

    def run(self) -> int:
        return self.decide(self.id, "resolved", "resolve")


@dataclass(frozen=True)
class Discard(DecideLetters):
    id: OptionalLetterId = None

    def run(self) -> int:
        return self.decide(self.id, "discarded", "discard")


@dataclass(frozen=True)
class Note(Command):
    id: LetterId
    text: Annotated[str, Argument(metavar="TEXT", help="What others should know of it.")]

    def run(self) -> int:
        session = self.session()
        with open_state(session) as database:
            letter = Ledger(database).one(self.id)
            decision = Decision("note", actor(), self.text, now_ms())
            _carry_out(session, database, [letter], decision)
        session.emit("audit.action", actor=actor(), action="dlq.note", target=letter.id, affected=1)
        style = Style(now_ms(), self.as_json)
        table = table_of([line_of(letter, style)], 1, as_json=self.as_json)
        print_table(table, as_json=self.as_json, empty="")
        remark("Noted. The ledger shows it when it has read the marker.")
        return DONE
