"""What is neither stored nor lost: dead letters, and what waits on some topic."""

from collections.abc import Mapping
from typing import Any

import orjson

from forebay.attachments.upload import beside
from forebay.core.envelope import Origin, read_envelope
from forebay.core.records import Record
from forebay.domains.xact import tables
from forebay.domains.xact.audit_books import (
    DEAD,
    LETTER,
    WAITS,
    Books,
    attachment_number,
    event_number,
    record_number,
)
from forebay.domains.xact.audit_places import DOWNLOAD, INGESTER, UPLOAD, AuditPlaces, Positions
from forebay.domains.xact.audit_source import Source
from forebay.domains.xact.messages import Event, domain_of, read_event
from forebay.domains.xact.settings import DOMAIN
from forebay.engine.payloads import Undecodable
from forebay.operations.domain_audit import AuditRequest
from forebay.operations.letters_kept import KeptLetter, kept_letters
from forebay.operations.spans import records_in, rest_of

_OF_EVENTS = (INGESTER, "event-writer")


class AsideReader:
    def __init__(self, places: AuditPlaces, positions: Positions, books: Books) -> None:
        self._places = places
        self._positions = positions
        self._books = books

    def read_letters(self, source: Source, request: AuditRequest) -> None:
        places = self._places
        for letter in kept_letters(places.broker, places.pipeline, places.state):
            bits = LETTER | DEAD if letter.is_dead else LETTER
            self._mark_record(letter.stage, letter.origin, bits)
            if letter.stage in _OF_EVENTS:
                self._take_event_letter(letter, bits, source, request)
            else:
                self._take_attachment_letter(letter, bits)

    def read_waiting_events(self) -> None:
        """Those that the ingester has met before, or has not met while their row is there."""
        route = self._places.route(INGESTER)
        for records in self._positions.unfinished.coming_back(route):
            for record in records:
                envelope = read_envelope(record)
                if envelope is not None:
                    self._mark_record(INGESTER, envelope.origin, WAITS)
                self._mark_event(_event_in(record), WAITS)

    def read_events_not_ingested(self) -> None:
        """For a source that does not know the offsets of its events."""
        topic = self._places.settings.topics.events
        rest = rest_of(self._places.watermarks(topic), self._positions.ingested)
        for records in records_in(self._places.broker, rest):
            for record in records:
                self._mark_event(_event_in(record), WAITS)

    def read_waiting_attachments(self) -> None:
        for stage in (DOWNLOAD, UPLOAD):
            route = self._places.route(stage)
            for records in self._positions.unfinished.records_of(route):
                for record in records:
                    if (body := body_of(record.value)) is not None:
                        self._books.attachments.mark_known(_number(body), WAITS)
                        keep_path(self._books, body)

    def give_letters_to_attachments(self) -> None:
        """Once the source has said which there are."""
        for number, bits in self._books.aside:
            self._books.attachments.mark_known(number, bits)

    def _take_event_letter(
        self, letter: KeptLetter, bits: int, source: Source, request: AuditRequest
    ) -> None:
        """A table of events has no row of what nobody could read: its letter stands for it."""
        if letter.stage != INGESTER:
            return
        event = _event_in(_as_record(letter))
        self._mark_event(event, bits)
        origin = letter.origin
        written = self._positions.stored(tables.EVENTS).get(origin.at, 0)
        is_in_table_only = source.name == tables.EVENTS and origin.offset < written
        if event is None and is_in_table_only and request.holds(origin.timestamp_ms):
            number = record_number("counted", origin)
            if not self._books.aside.mark(number, LETTER):
                self._books.states_of_events[_state(letter)] += 1

    def _take_attachment_letter(self, letter: KeptLetter, bits: int) -> None:
        body = body_of(letter.value)
        if body is not None:
            self._books.aside.mark(_number(body), bits)
            if letter.stage != DOWNLOAD:
                keep_path(self._books, body)

    def _mark_record(self, stage: str, origin: Origin, bits: int) -> None:
        self._books.aside.mark(record_number(stage, origin), bits)

    def _mark_event(self, event: Event | None, bits: int) -> None:
        if event is not None:
            number = event_number(event.trace_id, ",".join(event.attachments))
            self._books.aside.mark(number, bits)


def _state(letter: KeptLetter) -> str:
    return "dead_lettered" if letter.is_dead else "nothing_to_do"


def body_of(value: bytes | None) -> Mapping[str, Any] | None:
    """A message between our stages; None for what is none."""
    try:
        body = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) and "attachment_url" in body else None


def keep_path(books: Books, body: Mapping[str, Any]) -> None:
    """A file that an upload has stored before its row was written."""
    path, url = body.get("destination_path") or body.get("blob_path"), body["attachment_url"]
    if isinstance(path, str) and isinstance(url, str):
        books.paths.mark(hash(path), WAITS)
        books.paths.mark(hash(beside(path, url)), WAITS)


def _number(body: Mapping[str, Any]) -> int:
    trace_id, url = body.get("trace_id"), body["attachment_url"]
    return attachment_number(str(trace_id), str(url))


def _event_in(record: Record) -> Event | None:
    try:
        return read_event(record) if domain_of(record) == DOMAIN else None
    except Undecodable:
        return None


def _as_record(letter: KeptLetter) -> Record:
    """As it was before it died."""
    origin = letter.origin
    return Record(
        letter.value, None, letter.headers, *origin.at, origin.offset, origin.timestamp_ms
    )
