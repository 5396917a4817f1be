"""The events that everything must be accounted for by: of the raw topic, or of their table."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from forebay.broker.port import Watermarks
from forebay.core.envelope import first_origin
from forebay.core.errors import Unusable
from forebay.core.records import Record, TopicPartition
from forebay.domains.xact import tables
from forebay.domains.xact.audit_books import (
    LETTER,
    WAITS,
    Books,
    event_number,
    record_number,
)
from forebay.domains.xact.audit_places import INGESTER, WRITERS, AuditPlaces, Positions
from forebay.domains.xact.audit_rows import rows_in
from forebay.domains.xact.messages import Event, domain_of, read_event
from forebay.domains.xact.settings import DOMAIN
from forebay.engine.payloads import Undecodable
from forebay.operations.domain_audit import AuditRequest
from forebay.operations.spans import records_in, rest_of

_BETWEEN_LINKS = re.compile(r",(?=[a-zA-Z][a-zA-Z0-9+.\-]*://)")
_COLUMNS = ("trace_id", "attachments", "assignment_id", "ingested_at", "raw_json")


class SourceEvent(NamedTuple):
    """`trace_id` None: nobody could read it. `links` are those to fetch, `number` is its row's.

    `is_expected`: its row should be there. `aside`: whether it waits, or has a dead letter.
    """

    trace_id: str | None
    links: tuple[str, ...]
    number: int
    is_expected: bool
    aside: int
    day: date | None
    place: str


class Source(Protocol):
    name: str
    size: int

    def events(self) -> Iterator[list[SourceEvent]]: ...


def choose_source(
    places: AuditPlaces, positions: Positions, books: Books, request: AuditRequest
) -> Source:
    raw = RawEvents(places, positions, books, request)
    table = places.table(tables.EVENTS)
    if raw.reaches_back:
        return raw
    if table is not None:
        return TableEvents(raw, table.summary().rows)
    if not raw.exists:
        raise Unusable(
            f"There is neither a topic {raw.name} nor a table {tables.EVENTS}: nothing was ever "
            f"run here, and nothing was audited. Name the broker with --broker, the data folder "
            f"with --dir."
        )
    books.add(
        "expired_range",
        f"{raw.name} no longer holds its first records, and there is no table {tables.EVENTS}: "
        f"what came before cannot be accounted for. Lengthen the topic's retention, or let the "
        f"event-writer run.",
    )
    return raw


class RawEvents:
    """Records of the raw topic, by their timestamps where times are asked for."""

    def __init__(
        self, places: AuditPlaces, positions: Positions, books: Books, request: AuditRequest
    ) -> None:
        self.places = places
        self.positions = positions
        self.books = books
        self.request = request
        self.name = places.settings.topics.events
        self._marks = places.watermarks(self.name)
        self._written = positions.stored(tables.EVENTS)
        self.size = sum(end - low for low, end in self._marks.values())

    @property
    def exists(self) -> bool:
        return bool(self._marks)

    @property
    def reaches_back(self) -> bool:
        """All that is asked for is still there, and not in a topic before this one."""
        is_first = not self.positions.holds_others(tables.EVENTS)
        return self.exists and all(
            (is_first and span.low == 0) or self._began_before(at, span)
            for at, span in self._marks.items()
        )

    def events(self) -> Iterator[list[SourceEvent]]:
        return self._events(self._since())

    def unwritten(self) -> Iterator[list[SourceEvent]]:
        """What the events' table does not have yet."""
        return self._events(rest_of(self._marks, self._written))

    def _events(self, spans: Mapping[TopicPartition, Watermarks]) -> Iterator[list[SourceEvent]]:
        for records in records_in(self.places.broker, spans):
            read = (self._read(r) for r in records if self.request.holds(r.timestamp_ms))
            yield [event for event in read if event is not None]

    def _read(self, record: Record) -> SourceEvent | None:
        domain = domain_of(record)
        if domain in self.places.settings.other_domains:
            return None
        aside = self._aside(record)
        if domain == DOMAIN:
            try:
                return self._readable(record, read_event(record), aside)
            except Undecodable:
                pass
        place = f"offset {record.offset} of {record.at}"
        return SourceEvent(None, (), 0, is_expected=False, aside=aside, day=None, place=place)

    def _readable(self, record: Record, event: Event, aside: int) -> SourceEvent:
        links = event.attachments
        number = event_number(event.trace_id, ",".join(links))
        aside |= self.books.aside.of(number)
        is_written = record.offset < self._written.get(record.at, 0)
        return SourceEvent(
            event.trace_id,
            event.links_to_store,
            number,
            is_expected=is_written and not self._has_letter(record, WRITERS[tables.EVENTS]),
            aside=aside,
            day=event.day,
            place=self.name,
        )

    def _aside(self, record: Record) -> int:
        number = record_number(INGESTER, first_origin(record))
        aside = self.books.aside.of(number)
        if record.offset >= self.positions.ingested.get(record.at, 0):
            aside |= WAITS
        return aside

    def _has_letter(self, record: Record, stage: str) -> bool:
        number = record_number(stage, first_origin(record))
        return bool(self.books.aside.of(number) & LETTER)

    def _since(self) -> dict[TopicPartition, Watermarks]:
        from_ms = self.request.from_ms
        if from_ms is None:
            return self._marks
        consumer = self.places.broker.consumer(None)
        try:
            starts = {at: consumer.offset_for_time(at, from_ms) for at in self._marks}
        finally:
            consumer.close()
        return rest_of(self._marks, starts)

    def _began_before(self, at: TopicPartition, span: Watermarks) -> bool:
        """An older record than was asked for is still there, so the others are."""
        if self.request.from_ms is None:
            return False
        low, end = span
        first = records_in(self.places.broker, {at: Watermarks(low, min(low + 1, end))})
        oldest = next((records[0] for records in first if records), None)
        return oldest is not None and oldest.timestamp_ms < self.request.from_ms


class TableEvents:
    """Rows of the events' table, and what the raw topic holds that is no row yet."""

    name = tables.EVENTS

    def __init__(self, raw: RawEvents, rows: int) -> None:
        self._raw = raw
        self._books = raw.books
        self.size = rows

    def events(self) -> Iterator[list[SourceEvent]]:
        table = self._raw.places.table(tables.EVENTS)
        days = days_of(self._raw.request, self._raw.places.now_ms)
        for rows in rows_in(table, _COLUMNS, days):
            yield [self._read(row) for row in rows if self._is_asked_for(row)]
        yield from self._raw.unwritten()

    def _is_asked_for(self, row: tuple[Any, ...]) -> bool:
        at = row[3]
        return not isinstance(at, datetime) or self._raw.request.holds(_milliseconds(at))

    def _read(self, row: tuple[Any, ...]) -> SourceEvent:
        trace_id, written, assignment_id, at, _ = row
        number = event_number(trace_id, written or "")
        return SourceEvent(
            str(trace_id),
            () if assignment_id is None else _links(row),
            number,
            is_expected=False,
            aside=self._books.aside.of(number),
            day=at.date() if isinstance(at, datetime) else None,
            place=self.name,
        )


def days_of(request: AuditRequest, now_ms: int) -> list[date]:
    """Of the partitions that may hold what was asked for; none means all of them."""
    if request.from_ms is None:
        return []
    first = _moment(request.from_ms).date()
    last = _moment(now_ms if request.to_ms is None else request.to_ms).date()
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def _links(row: tuple[Any, ...]) -> tuple[str, ...]:
    """A link may hold a comma, which also stands between them: then the event itself is asked."""
    trace_id, written, _, _, raw = row
    if not written or "," not in written:
        return (written,) if written else ()
    if raw:
        try:
            return read_event(Record(raw.encode(), str(trace_id).encode())).attachments
        except Undecodable:
            pass
    return tuple(dict.fromkeys(_BETWEEN_LINKS.split(written)))


def _milliseconds(at: datetime) -> int:
    moment = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return round(moment.timestamp() * 1000)


def _moment(timestamp_ms: int) -> datetime:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC)
