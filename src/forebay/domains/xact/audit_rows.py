"""The rows of the tables, and whether each is there once."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple, TypeAlias

from forebay.attachments.results import REFUSED as REFUSED_CATEGORY
from forebay.domains.xact.audit_books import (
    DEAD,
    FAILED_ROW,
    PRESENT,
    REFUSED,
    STORED,
    Books,
    attachment_number,
    event_number,
)
from forebay.lakehouse.tables.port import Table

Advance: TypeAlias = Callable[[int], None]

ROWS_AT_ONCE = 20_000
DATE_COLUMNS = ("event_date", "created_date")


class StoredRow(NamedTuple):
    """One row of the inventory. What an older writer left out is None."""

    trace_id: str
    attachment_url: str
    blob_path: str | None
    bytes_downloaded: int | None
    content_sha256: str | None


def rows_in(
    table: Table | None, columns: Sequence[str], days: Sequence[date] = ()
) -> Iterator[list[tuple[Any, ...]]]:
    """None for a column that the table does not have. A table that is not by day gives all."""
    if table is None:
        return
    described = table.describe()
    there = {column.name for column in described.columns}
    known = [name for name in columns if name in there]
    is_by_day = bool(described.partition_by) and described.partition_by[0] in DATE_COLUMNS
    partitions = days if is_by_day else ()
    for rows in table.rows(known, partitions, ROWS_AT_ONCE):
        if len(known) == len(columns):
            yield rows
        else:
            at = [known.index(name) if name in there else None for name in columns]
            yield [tuple(None if n is None else row[n] for n in at) for row in rows]


class RowReader:
    """`days` are those of the audited events; None means that every row is looked at."""

    def __init__(self, books: Books, days: Sequence[date] | None, advance: Advance) -> None:
        self._books = books
        self._days = days
        self._advance = advance

    def read_events(self, table: Table | None) -> None:
        for rows in self._batches(table, ("trace_id", "attachments")):
            for trace_id, links in rows:
                number = event_number(trace_id, links or "")
                before = self._mark_event(number)
                if before & PRESENT:
                    self._doubled("xact_events", trace_id, None)

    def read_failed(self, table: Table | None) -> None:
        columns = ("trace_id", "attachment_url", "error_category")
        for rows in self._batches(table, columns):
            for trace_id, url, category in rows:
                state = REFUSED if category == REFUSED_CATEGORY else DEAD
                before = self._mark(attachment_number(trace_id, url), FAILED_ROW | state)
                if before & FAILED_ROW:
                    self._doubled("xact_attachments_failed", trace_id, url)

    def read_stored(self, table: Table | None) -> Iterator[list[StoredRow]]:
        """Those of audited events, in batches: their files are to be looked at."""
        for rows in self._batches(table, StoredRow._fields):
            yield [row for row in map(StoredRow._make, rows) if self._is_counted(row)]

    def read_elsewhere(self, stored: Table | None, failed: Table | None) -> None:
        """In all partitions: an event that came again has its rows where it came first."""
        for rows in rows_in(stored, ("trace_id", "attachment_url")):
            for trace_id, url in rows:
                self._books.attachments.mark_known(attachment_number(trace_id, url), STORED)
        for rows in rows_in(failed, ("trace_id", "attachment_url", "error_category")):
            for trace_id, url, category in rows:
                state = REFUSED if category == REFUSED_CATEGORY else DEAD
                number = attachment_number(trace_id, url)
                self._books.attachments.mark_known(number, FAILED_ROW | state)

    def _batches(
        self, table: Table | None, columns: Sequence[str]
    ) -> Iterator[list[tuple[Any, ...]]]:
        if self._days is not None and not self._days:
            return
        for rows in rows_in(table, columns, self._days or ()):
            self._advance(len(rows))
            yield rows

    def _is_counted(self, row: StoredRow) -> bool:
        before = self._mark(attachment_number(row.trace_id, row.attachment_url), STORED)
        if before & STORED:
            self._doubled("xact_attachments", row.trace_id, row.attachment_url)
        if self._days is None and not before:
            self._books.facts["rows_without_event"] += 1
        return self._days is None or bool(before)

    def _mark(self, number: int, bits: int) -> int:
        marks = self._books.attachments
        return marks.mark(number, bits) if self._days is None else marks.mark_known(number, bits)

    def _mark_event(self, number: int) -> int:
        marks = self._books.events
        if self._days is None:
            return marks.mark(number, PRESENT)
        return marks.mark_known(number, PRESENT)

    def _doubled(self, table: str, trace_id: object, url: object) -> None:
        self._books.facts["doubled"] += 1
        what = "the event" if url is None else "the attachment"
        self._books.add(
            "doubled_row",
            f"{table} has more than one row of {what} of {trace_id}. Whoever counts rows counts "
            f"it twice; delete one, and look who else writes that table.",
            trace_id,
            url,
        )
