"""forebay dlq list and stats: what lies there, and why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from forebay.cli.command import DONE
from forebay.cli.dlq_choice import Choice
from forebay.cli.dlq_rows import Style, filed_line, filed_trace_id, line_of, table_of
from forebay.cli.dlq_state import open_state
from forebay.cli.errors import WrongUse
from forebay.cli.output import Table, print_table, remark
from forebay.cli.positions import now_ms
from forebay.engine.ledger import Ledger
from forebay.engine.letter_file import read_letters
from forebay.engine.letter_rows import FiledLetter
from forebay.engine.letters import Cause, LetterFilter
from forebay.observability.redaction import scrub

LIST_MAX = 100


@dataclass(frozen=True)
class ListLetters(Choice):
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, help="Show so many at most, the newest.")
    ] = LIST_MAX
    file: Annotated[
        Path | None,
        Option("--file", metavar="CSV", help="Those of a dead-letter file, also a .gz one."),
    ] = None

    def run(self) -> int:
        if self.file is not None:
            return self._list_file(self.file)
        style = Style(now_ms(), self.as_json)
        with open_state(self.session()) as database:
            page = Ledger(database).find(self.wanted(), self.limit)
        lines = [line_of(letter, style) for letter in page.items]
        table = table_of(lines, page.total, as_json=self.as_json)
        print_table(table, as_json=self.as_json, empty="No dead letter matches.")
        self._tell_rest(page.total)
        return DONE

    def _list_file(self, file: Path) -> int:
        wanted = self.wanted()
        if wanted.pipeline or wanted.cause or wanted.state:
            raise WrongUse(
                "A dead-letter file knows no --pipeline, --cause or --state; leave them out."
            )
        found, unreadable = read_letters(file)
        letters = [letter for letter in reversed(found) if _is_wanted(letter, wanted)]
        style = Style(now_ms(), self.as_json)
        lines = [filed_line(letter, style) for letter in letters[: self.limit]]
        table = table_of(lines, len(letters), as_json=self.as_json)
        print_table(table, as_json=self.as_json, empty="No dead letter matches.")
        self._tell_rest(len(letters))
        if unreadable:
            remark(f"{unreadable:,} more rows cannot be read: they were cut or changed.")
        return DONE

    def _tell_rest(self, total: int) -> None:
        if total > self.limit and not self.as_json:
            remark(f"{self.limit:,} of {total:,}, the newest. More: --limit N, or dlq export.")


def _is_wanted(letter: FiledLetter, wanted: LetterFilter) -> bool:
    record, failed_ms = letter.record, letter.failed_ms or 0
    return (
        wanted.topic in {None, record.topic}
        and wanted.key in {None, record.key}
        and wanted.category in {None, letter.error_type}
        and (wanted.since_ms is None or failed_ms >= wanted.since_ms)
        and (wanted.until_ms is None or failed_ms < wanted.until_ms)
        and (wanted.text is None or wanted.text.casefold() in _searched(letter))
    )


def _searched(letter: FiledLetter) -> str:
    parts = (letter.record.key, letter.record.value)
    texts = [(part or b"").decode("utf-8", "replace") for part in parts]
    return "\n".join((letter.reason, filed_trace_id(letter) or "", *texts)).casefold()


@dataclass(frozen=True)
class CauseStats(Choice):
    def run(self) -> int:
        with open_state(self.session()) as database:
            causes = Ledger(database).causes(self.wanted())
        shown = causes[: self.limit]
        print_table(self._table(causes, shown), as_json=self.as_json, empty="No dead letter.")
        if not self.as_json and causes:
            waiting = sum(cause.open for cause in causes)
            remark(
                f"{waiting:,} open of {sum(cause.entries for cause in causes):,} dead letters with "
                f"{len(causes):,} causes. Next: forebay dlq list --cause {causes[0].fingerprint}"
            )
        return DONE

    def _table(self, causes: list[Cause], shown: list[Cause]) -> Table:
        style = Style(now_ms(), self.as_json)
        heads = ("cause", "reason", "pipeline", "open", "first", "last", "what to do")
        rows = [
            (
                cause.fingerprint,
                scrub(cause.reason),
                f"{cause.pipeline}.{cause.stage}" if cause.pipeline else cause.stage,
                cause.open,
                style.moment(cause.first_ms),
                style.moment(cause.last_ms),
                cause.what_to_do,
            )
            for cause in shown
        ]
        extra: list[dict[str, object]] = [
            {"category": cause.category, "entries": cause.entries, "stage": cause.stage}
            for cause in shown
        ]
        facts = {
            "total": len(causes),
            "open": sum(cause.open for cause in causes),
            "entries": sum(cause.entries for cause in causes),
        }
        return Table(heads, rows, extra, facts)
