"""The results that the topic still holds: those that are passed have their row."""

from collections.abc import Mapping
from typing import Any

from forebay.attachments.results import COMPLETED, FAILED_PERMANENT, status_of
from forebay.attachments.results import REFUSED as REFUSED_CATEGORY
from forebay.core.envelope import first_origin
from forebay.core.records import Record
from forebay.domains.xact import tables
from forebay.domains.xact.audit_aside import body_of, keep_path
from forebay.domains.xact.audit_books import (
    FAILED_ROW,
    LETTER,
    STORED,
    TOLD,
    WAITS,
    Books,
    attachment_number,
    record_number,
)
from forebay.domains.xact.audit_places import WRITERS, AuditPlaces, Positions
from forebay.domains.xact.audit_rows import Advance
from forebay.operations.letters_kept import forgotten_letters
from forebay.operations.spans import records_in

_TABLE_OF: Mapping[str, str] = {COMPLETED: tables.ATTACHMENTS, FAILED_PERMANENT: tables.FAILED}


class ResultReader:
    """Call it after the tables and all that waits were read."""

    def __init__(
        self, places: AuditPlaces, positions: Positions, books: Books, advance: Advance
    ) -> None:
        self._places = places
        self._positions = positions
        self._books = books
        self._advance = advance
        self._knows_letters = not forgotten_letters(places.broker, places.pipeline, places.state)

    def read(self, *, audited_only: bool) -> None:
        topic = self._places.settings.topics.downloads_results
        for records in records_in(self._places.broker, self._places.watermarks(topic)):
            self._advance(len(records))
            for record in records:
                body = body_of(record.value)
                table = _TABLE_OF.get(status_of(str(body.get("status")))) if body else None
                if body is not None and table is not None:
                    self._take(record, body, table, audited_only=audited_only)

    def _take(
        self, record: Record, body: Mapping[str, Any], table: str, *, audited_only: bool
    ) -> None:
        number = attachment_number(str(body.get("trace_id")), str(body["attachment_url"]))
        if table == tables.ATTACHMENTS:
            # Stored twice with other content, the second file is beside the first, without a row.
            keep_path(self._books, body)
        if record.offset >= self._positions.stored(table).get(record.at, 0):
            self._books.attachments.mark_known(number, WAITS)
            keep_path(self._books, body)
            return
        bits = self._books.attachments.of(number)
        if bits & TOLD or (audited_only and not bits):
            return
        if not bits & (STORED if table == tables.ATTACHMENTS else STORED | FAILED_ROW):
            self._tell_missing_row(record, body, table, number)
        elif table == tables.FAILED and self._lacks_its_letter(body, bits):
            self._books.attachments.mark(number, TOLD)
            self._tell_missing_letter(body)

    def _tell_missing_row(
        self, record: Record, body: Mapping[str, Any], table: str, number: int
    ) -> None:
        letter = record_number(WRITERS[table], first_origin(record))
        if self._books.aside.of(letter) & LETTER:
            return
        self._books.attachments.mark(number, TOLD)
        keep_path(self._books, body)
        worker = f"{self._places.pipeline.name}-{WRITERS[table]}"
        self._books.add(
            "missing_row",
            f"{worker} is past the result of an attachment of {body.get('trace_id')}, and {table} "
            f"has no row of it. Somebody deleted the row, or the table was set back: restore it "
            f"from the table's history.",
            body.get("trace_id"),
            body["attachment_url"],
        )

    def _lacks_its_letter(self, body: Mapping[str, Any], bits: int) -> bool:
        """What was refused has none."""
        if body.get("error_category") == REFUSED_CATEGORY or not self._knows_letters:
            return False
        return not bits & (LETTER | WAITS | STORED)

    def _tell_missing_letter(self, body: Mapping[str, Any]) -> None:
        self._books.add(
            "unaccounted",
            f"An attachment of {body.get('trace_id')} failed for good, and its dead letter is "
            f"neither in the ledger nor on its topic: it cannot be replayed. Instead "
            f"{self._places.send_again}.",
            body.get("trace_id"),
            body["attachment_url"],
        )
