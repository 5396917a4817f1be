"""Questions to the dead-letter ledger. It answers from what was folded so far."""

from forebay.engine.letter_queries import SELECT, beginning, letter_from, matching
from forebay.engine.letters import (
    Cause,
    DeadLetter,
    LetterFilter,
    Page,
    SeveralLetters,
    UnknownLetter,
)
from forebay.engine.standing import TELLING_COLUMNS, Telling, telling_from
from forebay.state.port import Database, Row

_IDS_TOLD_MAX = 5


class Ledger:
    """Every method reads. Blocking."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, wanted: LetterFilter, limit: int = 50) -> Page:
        """The newest first."""
        condition, values = matching(wanted)
        rows = self._database.read(
            f"{SELECT} WHERE {condition} ORDER BY failed_ms DESC, id LIMIT ?", (*values, limit)
        )
        return Page([letter_from(row) for row in rows], self.count(wanted))

    def count(self, wanted: LetterFilter) -> int:
        condition, values = matching(wanted)
        statement = f"SELECT count(*) FROM dead_letters WHERE {condition}"  # noqa: S608 - constants
        ((count,),) = self._database.read(statement, values)
        return int(count or 0)

    def one(self, asked: str) -> DeadLetter:
        """By its id, its trace id, or a beginning of the id that no other has.

        Raises UnknownLetter and SeveralLetters.
        """
        for condition, value in (
            ("id = ?", asked),
            ("trace_id = ?", asked),
            ("id LIKE ? ESCAPE '!'", beginning(asked)),
        ):
            found = self._database.read(
                f"{SELECT} WHERE {condition} ORDER BY id LIMIT ?", (value, _IDS_TOLD_MAX)
            )
            if len(found) > 1:
                raise SeveralLetters(asked, [letter_from(row).id for row in found])
            if found:
                return letter_from(found[0])
        raise UnknownLetter(
            f"No dead letter has the id or trace id {asked!r}, or an id that begins so. Look for "
            f"it with: forebay dlq list."
        )

    def causes(self, wanted: LetterFilter) -> list[Cause]:
        """Those with most entries to decide first."""
        condition, values = matching(wanted)
        rows = self._database.read(
            "SELECT fingerprint, max(reason), category, pipeline, stage, "  # noqa: S608 - constants
            "sum(CASE WHEN state = 'open' THEN 1 ELSE 0 END) AS waiting, count(*), "
            f"min(first_failed_ms), max(failed_ms) FROM dead_letters WHERE {condition} "
            "GROUP BY fingerprint, category, pipeline, stage "
            "ORDER BY waiting DESC, max(failed_ms) DESC, fingerprint",
            values,
        )
        return [_cause(row) for row in rows]

    def story(self, id: str) -> list[Telling]:
        """Everything that was told of an entry, in the order it happened."""
        rows = self._database.read(
            f"SELECT {', '.join(TELLING_COLUMNS)} FROM dead_letter_markers "  # noqa: S608 - constants
            "WHERE letter_id = ? ORDER BY at_ms, replay_number, kind, digest",
            (id,),
        )
        return [telling_from(row) for row in rows]


def _cause(row: Row) -> Cause:
    fingerprint, reason, category, pipeline, stage, waiting, entries, first_ms, last_ms = row
    return Cause(
        str(fingerprint),
        str(reason),
        str(category),
        str(pipeline),
        str(stage),
        int(waiting or 0),
        int(entries or 0),
        int(first_ms or 0),
        int(last_ms or 0),
    )
