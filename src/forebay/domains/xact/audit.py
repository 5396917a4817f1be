"""The conservation proof of xact, made from its data alone.

Every attachment that an event names is in exactly one state, and so is every event. Positions are
read first, then all else: what moves on meanwhile is found in two places, and the first state of
its list counts.
"""

from forebay.domains.xact import tables
from forebay.domains.xact.audit_aside import AsideReader
from forebay.domains.xact.audit_books import (
    DEAD,
    EXPECTED,
    IN_SOURCE,
    LETTER,
    LOST,
    PRESENT,
    TOLD,
    WAITS,
    Books,
    attachment_number,
    state_of,
)
from forebay.domains.xact.audit_files import FileReader
from forebay.domains.xact.audit_places import WRITERS, AuditPlaces, Positions
from forebay.domains.xact.audit_results import ResultReader
from forebay.domains.xact.audit_rows import RowReader
from forebay.domains.xact.audit_source import RawEvents, SourceEvent, choose_source
from forebay.operations.audit import Audit
from forebay.operations.domain_audit import AuditRequest, DomainReport, Progress
from forebay.operations.marks import Marks

FACTS = (
    *("files_listed", "files_checked", "files_hashed", "files_without_hash"),
    *("rows_without_event", "renewed"),
)
TRACES = {"nothing_to_do": 1, "with_attachments": 2, "dead_lettered": 4}
EVENT_STATES = ("with_attachments", "nothing_to_do", "dead_lettered", "waiting", LOST)


class XactAudit:
    """Reads only, once."""

    def __init__(self, places: AuditPlaces) -> None:
        self._places = places

    def report(self, request: AuditRequest, progress: Progress) -> DomainReport:
        return _Audit(self._places, request, progress).report()


class _Audit:
    def __init__(self, places: AuditPlaces, request: AuditRequest, progress: Progress) -> None:
        self._places = places
        self._request = request
        self._books = Books()
        self._positions = Positions(places)
        self._aside = AsideReader(places, self._positions, self._books)
        self._source = choose_source(places, self._positions, self._books, request)
        self._steps = _Steps(self._total(), progress)
        self._lost_told = Marks()
        self._files = FileReader(places, self._books, self._steps.advance, content=request.content)

    def report(self) -> DomainReport:
        if not self._request.is_bounded:
            self._files.take_stock()
        self._read_what_lies_aside()
        self._count_events()
        self._read_rows()
        self._read_results()
        self._tell_what_is_missing()
        if not self._request.is_bounded:
            self._files.tell_orphans()
        self._tell_gaps()
        return self._told()

    def _read_what_lies_aside(self) -> None:
        self._aside.read_letters(self._source, self._request)
        self._aside.read_waiting_events()
        if not isinstance(self._source, RawEvents):
            self._aside.read_events_not_ingested()

    def _count_events(self) -> None:
        for events in self._source.events():
            self._steps.advance(len(events))
            for event in events:
                self._count(event)
        self._aside.give_letters_to_attachments()
        self._aside.read_waiting_attachments()

    def _count(self, event: SourceEvent) -> None:
        books = self._books
        if event.trace_id is None:
            books.states_of_events[_state_of_unreadable(event.aside)] += 1
            if _state_of_unreadable(event.aside) == LOST:
                self._tell_unreadable(event)
            return
        if event.day is not None:
            books.days.add(event.day)
        books.events.mark(event.number, IN_SOURCE | (EXPECTED if event.is_expected else 0))
        bits = IN_SOURCE | event.aside & (WAITS | DEAD | LETTER)
        fresh = 0
        for url in event.links:
            fresh += not books.attachments.mark(attachment_number(event.trace_id, url), bits)
        self._count_record(event, is_fresh=fresh > 0)

    def _count_record(self, event: SourceEvent, *, is_fresh: bool) -> None:
        """An event is known by its trace id: what comes again repeats it, or renews its links."""
        state = _state_of_event(event)
        counts = self._books.states_of_events
        before = self._books.traces.mark(hash(event.trace_id), TRACES[state])
        if not before:
            counts[state] += 1
        elif not is_fresh:
            self._books.facts["repeated"] += 1
        else:
            self._books.facts["renewed"] += 1
            if before == TRACES["nothing_to_do"]:
                counts["nothing_to_do"] -= 1
                counts[state] += 1

    def _read_rows(self) -> None:
        days = sorted(self._books.days) if self._request.is_bounded else None
        reader = RowReader(self._books, days, self._steps.advance)
        table = self._places.table
        reader.read_events(table(tables.EVENTS))
        reader.read_failed(table(tables.FAILED))
        for rows in reader.read_stored(table(tables.ATTACHMENTS)):
            self._files.check(rows)
        if self._request.is_bounded and self._books.states_of_attachments()[LOST]:
            reader.read_elsewhere(table(tables.ATTACHMENTS), table(tables.FAILED))

    def _read_results(self) -> None:
        reader = ResultReader(self._places, self._positions, self._books, self._steps.advance)
        reader.read(audited_only=self._request.is_bounded)

    def _tell_what_is_missing(self) -> None:
        """Only now their texts are needed, so the source is read again, and only then."""
        missing = self._books.missing_events
        if not missing and not self._books.states_of_attachments()[LOST]:
            return
        for events in self._source.events():
            for event in events:
                if event.trace_id is not None:
                    self._tell_missing_event(event)
                    self._tell_lost(event)

    def _tell_missing_event(self, event: SourceEvent) -> None:
        bits = self._books.events.of(event.number)
        if not bits & EXPECTED or bits & (PRESENT | TOLD):
            return
        self._books.events.mark(event.number, TOLD)
        self._books.add(
            "missing_event",
            f"{self._places.pipeline.name}-{WRITERS[tables.EVENTS]} is past the event "
            f"{event.trace_id}, and {tables.EVENTS} has no row of it. Somebody deleted the row, or "
            f"the table was set back: restore it from the table's history.",
            event.trace_id,
        )

    def _tell_lost(self, event: SourceEvent) -> None:
        for url in event.links:
            number = attachment_number(event.trace_id, url)
            bits = self._books.attachments.of(number)
            if state_of(bits) == LOST and not self._lost_told.mark(number, TOLD):
                self._books.add(
                    "unaccounted",
                    f"An attachment of {event.trace_id} is neither stored nor dead-lettered nor "
                    f"refused, and no topic holds it. Report this, and {self._places.send_again}.",
                    event.trace_id,
                    url,
                )

    def _tell_unreadable(self, event: SourceEvent) -> None:
        self._books.add(
            "unaccounted",
            f"The record at {event.place} is no event that anybody could read, the ingester is "
            f"past it, and it has no dead letter. Look for it with: forebay topics read.",
        )

    def _tell_gaps(self) -> None:
        audit = Audit(self._places.broker, self._places.state, self._places.now_ms)
        for gap in audit.gaps(self._places.pipeline):
            self._books.add("expired_range", gap.detail)
        for table, stage in WRITERS.items():
            marks = self._places.watermarks(self._positions.source_of(table))
            for at, offset in self._positions.stored(table).items():
                if not marks[at].low <= offset <= marks[at].end:
                    self._books.add(
                        "expired_range",
                        f"Table {table} was filled by {stage} up to offset {offset} of {at}, "
                        f"whose log holds {marks[at].low} to {marks[at].end}. What lies between "
                        f"is in no table; see forebay sinks skip.",
                    )

    def _told(self) -> DomainReport:
        books = self._books
        return DomainReport(
            source=self._source.name,
            events={name: books.states_of_events[name] for name in EVENT_STATES},
            attachments=books.states_of_attachments(),
            repeated=books.facts["repeated"],
            doubled=books.facts["doubled"],
            problems=books.problems,
            facts={name: books.facts[name] for name in FACTS},
        )

    def _total(self) -> int:
        """Of what there is to read, about: a file for each row."""
        rows = [table.summary().rows for table in self._places.tables.values() if table]
        inventory = self._places.table(tables.ATTACHMENTS)
        files = inventory.summary().rows if inventory else 0
        marks = self._places.watermarks(self._places.settings.topics.downloads_results)
        results = sum(end - low for low, end in marks.values())
        return self._source.size + sum(rows) + files + results


class _Steps:
    def __init__(self, total: int, progress: Progress) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def advance(self, steps: int) -> None:
        self._done += steps
        self._progress(min(self._done, self._total), self._total)


def _state_of_event(event: SourceEvent) -> str:
    if event.aside & DEAD:
        return "dead_lettered"
    return "with_attachments" if event.links else "nothing_to_do"


def _state_of_unreadable(aside: int) -> str:
    """A letter that was replayed with success leaves nothing to do."""
    if aside & DEAD:
        return "dead_lettered"
    if aside & WAITS:
        return "waiting"
    return "nothing_to_do" if aside & LETTER else LOST
