"""Which events an audit begins with: the raw topic while it is whole, else their table."""

from datetime import UTC, date, datetime

import pytest

from forebay.core.sinks import SourcePartition
from forebay.domains.xact import tables
from forebay.state.schema import migrate
from forebay.state.sqlite.database import SqliteDatabase
from forebay.testing import FakeClock, MemoryBroker
from unit.domains.xact.audit_world import World, kinds, url

LINKS = [url(number) for number in range(8)]
DAY_1, DAY_2, DAY_3 = "2026-11-17", "2026-11-18", "2026-11-19"


def milliseconds(day, hour=0):
    return int(datetime.fromisoformat(f"{day}T{hour:02}:00:00+00:00").timestamp() * 1000)


@pytest.fixture
def world(tmp_path):
    clock = FakeClock(milliseconds(DAY_1, 12) / 1000)
    state = SqliteDatabase(tmp_path / "state.db")
    migrate(state)
    yield World(MemoryBroker(clock), state, clock)
    state.close()


@pytest.fixture
def days(world):
    """An attachment a day, stored; the second day has a malformed record, too."""
    for number, day in enumerate((DAY_1, DAY_2, DAY_3)):
        world.store(world.event(f"t-{number}", [LINKS[number]], at=f"{day}T12:00:00Z"))
        if day == DAY_2:
            world.bury("event-ingester", world.send(b"no json"))
        world.clock.advance(86_400)
    return world.finish()


def trim(world, count):
    """As retention does."""
    (at, *_) = world.ends(world.topics.events)
    world.admin.trim({at: count})


def test_the_raw_topic_is_the_source_while_it_holds_its_first_record(days):
    assert days.audit().source == "xact.events.raw"


def test_the_table_is_the_source_once_the_first_record_is_gone(days):
    trim(days, 1)
    report = days.audit()
    assert report.source == "xact_events"
    assert kinds(report) == []
    assert report.attachments["stored"] == 3
    assert report.events["with_attachments"] == 3
    assert report.events["dead_lettered"] == 1


def test_a_record_of_an_unknown_domain_is_counted_though_it_never_had_a_row(days):
    body = {"traceId": "t-else", "type": "x.y", "data": {}}
    days.bury("event-ingester", days.send(body, headers=[("domain", b"nobody")]))
    days.finish()
    trim(days, 1)
    report = days.audit()
    assert (report.source, kinds(report)) == ("xact_events", [])
    assert report.events["dead_lettered"] == 2


def test_the_raw_topic_stays_the_source_of_what_it_still_holds(days):
    trim(days, 1)
    assert days.audit(from_ms=milliseconds(DAY_3)).source == "xact.events.raw"
    assert days.audit(from_ms=milliseconds(DAY_2)).source == "xact_events"


@pytest.mark.parametrize("before", [("xact.events.raw", "b-0"), ("old.events.raw", "b-1")])
def test_a_topic_made_anew_is_not_the_source_of_what_an_earlier_one_held(days, before):
    """It was deleted and made again, or the pipeline moved to another broker."""
    topic, incarnation = before
    days.tables[tables.EVENTS].stored[
        "xact-event-writer", SourcePartition(topic, 0, incarnation)
    ] = 9
    early = dict(days.items(tables.EVENTS)[0]) | {"trace_id": "t-before"}
    days.items(tables.EVENTS).append(early)
    report = days.audit()
    assert report.source == "xact_events"
    assert (report.attachments["stored"], report.attachments["lost"]) == (3, 1)
    assert [problem.trace_id for problem in report.problems.told] == ["t-before"]
    assert days.audit(from_ms=milliseconds(DAY_3)).source == "xact_events"


def test_an_audit_of_some_days_ends_though_retention_has_emptied_a_partition(days):
    trim(days, 4)
    assert days.audit(from_ms=milliseconds(DAY_3)).source == "xact_events"


def test_another_sinks_position_and_an_empty_one_change_no_source(days):
    stored = days.tables[tables.EVENTS].stored
    stored["mod-kafka_consumer", SourcePartition("other", 0, "b-0")] = 9
    stored["xact-event-writer", SourcePartition("xact.events.raw", 0, "b-0")] = 0
    assert days.audit().source == "xact.events.raw"


def test_what_came_before_cannot_be_told_where_neither_has_it(days):
    trim(days, 1)
    days.tables[tables.EVENTS] = None
    report = days.audit()
    assert report.source == "xact.events.raw"
    assert kinds(report) == ["expired_range"]


def test_events_that_are_no_row_yet_are_added_from_the_raw_topic(days):
    trim(days, 1)
    days.event("t-new", [LINKS[5]])
    days.items(tables.EVENTS).pop()
    report = days.audit()
    assert report.source == "xact_events"
    assert kinds(report) == []
    assert (report.attachments["stored"], report.attachments["waiting"]) == (3, 1)


def test_an_event_whose_row_came_before_its_tasks_waits(days):
    trim(days, 1)
    days.event("t-new", [LINKS[5]])
    days.advance(tables.EVENTS)
    report = days.audit()
    assert kinds(report) == []
    assert report.attachments["waiting"] == 1


def test_from_and_to_choose_events_by_their_record_and_look_at_their_files_alone(days):
    del days.files.held[days.items(tables.ATTACHMENTS)[0]["blob_path"]]
    days.files.held["stray.pdf"] = b"x"
    span = {"from_ms": milliseconds(DAY_2), "to_ms": milliseconds(DAY_3)}
    report = days.audit(**span)
    assert kinds(report) == []
    assert report.attachments["stored"] == 1
    assert (report.events["with_attachments"], report.events["dead_lettered"]) == (1, 1)
    assert (report.facts["files_checked"], report.facts["files_listed"]) == (1, 0)
    assert days.tables[tables.ATTACHMENTS].read == [(date(2026, 11, 18),)]
    assert kinds(days.audit()) == ["missing_file", "orphan_file"]


def test_from_and_to_choose_rows_by_their_events_time(days):
    trim(days, 2)
    span = {"from_ms": milliseconds(DAY_1), "to_ms": milliseconds(DAY_2)}
    report = days.audit(**span)
    assert report.source == "xact_events"
    assert kinds(report) == []
    assert report.attachments == {
        "stored": 1,
        "refused": 0,
        "dead_lettered": 0,
        "waiting": 0,
        "lost": 0,
    }
    assert report.events["dead_lettered"] == 0


@pytest.mark.parametrize("trimmed", [0, 2])
def test_what_is_deleted_within_the_asked_time_is_missed(days, trimmed):
    trim(days, trimmed)
    del days.items(tables.ATTACHMENTS)[1]
    span = {"from_ms": milliseconds(DAY_2), "to_ms": milliseconds(DAY_3)}
    assert kinds(days.audit(**span)) == ["missing_row", "unaccounted"]
    assert days.audit(from_ms=milliseconds(DAY_3)).is_ok


def test_an_event_sent_again_later_is_found_where_it_was_stored_first(days):
    days.event("t-0", [LINKS[0]], at=f"{DAY_3}T23:00:00Z")
    days.items(tables.EVENTS)[-1]["ingested_at"] = datetime(2026, 11, 19, 23, tzinfo=UTC)
    days.finish()
    report = days.audit(from_ms=milliseconds(DAY_3, 13))
    assert report.attachments["lost"] == 0
    assert report.attachments["stored"] == 1


def test_links_with_commas_are_read_from_the_event_itself(world):
    links = ["https://files.example/a,b.pdf", "https://files.example/c.pdf?x=1,2,https://y.example"]
    world.store(world.event("t-1", links))
    world.finish()
    (at, *_) = world.ends(world.topics.events)
    world.admin.trim({at: 1})
    report = world.audit()
    assert (report.source, report.attachments["stored"]) == ("xact_events", 2)
    assert kinds(report) == []


def test_links_of_an_older_row_are_told_apart_by_where_one_begins(world):
    links = ["https://files.example/a,b.pdf", "https://files.example/c.pdf"]
    world.store(world.event("t-1", links))
    world.finish()
    world.items(tables.EVENTS)[0]["raw_json"] = None
    (at, *_) = world.ends(world.topics.events)
    world.admin.trim({at: 1})
    assert world.audit().attachments["stored"] == 2
