"""Events in every spelling, and events that can never become one."""

from datetime import UTC, date, datetime

import orjson
import pytest

from forebay.core.envelope import Envelope, Origin, seal
from forebay.domains.xact.messages import domain_of, media_id, read_event
from forebay.engine.payloads import Undecodable
from unit.domains.xact.events import HOST, event_record, event_value


def test_an_event_says_what_its_source_said():
    event = read_event(event_record())
    assert (event.trace_id, event.subtype, event.version) == ("tr-1", "documentsReceived", "1")
    assert event.at == datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
    assert event.day == date(2026, 1, 5)
    assert event.assignment_id == "A-1001"
    assert event.attachments == (f"{HOST}/p/report.pdf?X-Amz-Signature=x",)


def test_older_spellings_are_read_too():
    value = orjson.dumps({"trace_id": "tr-2", "event_type": "a.b", "timestamp": "2026-01-05"})
    event = read_event(event_record(value))
    assert (event.trace_id, event.subtype, event.attachments) == ("tr-2", "b", ())


def test_data_as_text_is_data():
    written = {**orjson.loads(event_value()), "data": '{"attachments":["x"]}'}
    event = read_event(event_record(orjson.dumps(written)))
    assert event.attachments == ("x",)


def test_a_link_that_is_given_twice_is_one_attachment_and_what_is_no_link_is_none():
    event = read_event(event_record(data={"attachments": ["a", "a", "", "  ", None, 7, "b"]}))
    assert event.attachments == ("a", "b")


def test_an_event_without_a_time_happened_when_it_came():
    event = read_event(event_record(utcDateTime=None))
    assert event.at == datetime(2026, 1, 5, 10, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("topic", "first_ms", "at"),
    [
        ("xact-event-ingester.xact.events.raw.again", 1_767_000_000_000, "2025-12-29T09:20:00"),
        ("xact.events.raw", 1_767_000_000_000, "2026-01-05T10:30:00"),
        ("xact-event-ingester.xact.events.raw.again", 2**63 - 1, "2026-01-05T10:30:00"),
    ],
    ids=["came back", "forged on the raw topic", "forged far ahead"],
)
def test_an_event_without_a_time_that_comes_back_happened_when_it_first_came(topic, first_ms, at):
    origin = Origin("xact.events.raw", 0, 0, first_ms)
    record = event_record(utcDateTime=None)._replace(topic=topic)
    sealed = record._replace(headers=seal(record, Envelope("id", "group", origin)))
    assert read_event(sealed).at == datetime.fromisoformat(f"{at}+00:00")


def test_links_without_an_assignment_are_not_to_be_stored():
    assert read_event(event_record()).links_to_store == read_event(event_record()).attachments
    unassigned = read_event(event_record(data={"assignmentId": None}))
    assert (len(unassigned.attachments), unassigned.links_to_store) == (1, ())


def test_a_time_with_another_offset_is_the_same_moment():
    event = read_event(event_record(utcDateTime="2026-01-05T23:30:00-07:00"))
    assert event.day == date(2026, 1, 6)


def test_an_event_has_the_same_id_each_time_it_is_read():
    first, second = read_event(event_record()), read_event(event_record(offset=9))
    assert first.event_id == second.event_id
    assert media_id("tr-1", "a") != media_id("tr-1", "b")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (b"", "no JSON"),
        (None, "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[]", "JSON list"),
        (event_value(traceId=None), "no trace id"),
        (event_value(traceId=" "), "no trace id"),
        (event_value(traceId=7), "no trace id"),
        (event_value(type=None), "no type"),
        (event_value(type="verisk."), "no type"),
        (event_value(utcDateTime="yesterday"), "no ISO-8601"),
        (event_value(data={"attachments": "https://x.example"}), "no list"),
        (orjson.dumps({"traceId": "t", "type": "a", "data": 5}), "not an object"),
        (orjson.dumps({"traceId": "t", "type": "a", "data": "{"}), "no JSON"),
    ],
)
def test_what_is_no_event_is_told_in_a_sentence(value, told):
    record = event_record(b"x")._replace(value=value)
    with pytest.raises(Undecodable, match=told):
        read_event(record)


def test_a_record_without_a_domain_belongs_to_who_reads_it():
    assert domain_of(event_record()) == "xact"
    assert domain_of(event_record(headers=[("domain", b"claimx")])) == "claimx"
    assert domain_of(event_record(headers=[("domain", None)])) == "xact"
