"""Every attachment is in one state, and whatever is taken away by hand is missed."""

import tracemalloc
from dataclasses import replace

import pytest

from forebay.attachments.upload import beside
from forebay.domains.xact import tables
from forebay.operations.spans import RECORDS_AT_ONCE
from forebay.outbound.errors import link
from forebay.state.expired_ranges import ExpiredRange, ExpiredRanges
from forebay.state.schema import migrate
from forebay.state.sqlite.database import SqliteDatabase
from forebay.testing import FakeClock, MemoryBroker
from unit.domains.xact.audit_world import World, kinds, url

EVENTS = 2 * RECORDS_AT_ONCE  # more batches than are held at one time
LINKS = [url(number) for number in range(8)]


@pytest.fixture
def world(tmp_path):
    clock = FakeClock(1_795_000_000.0)
    state = SqliteDatabase(tmp_path / "state.db")
    migrate(state)
    yield World(MemoryBroker(clock), state, clock)
    state.close()


@pytest.fixture
def whole(world):
    """One of everything that can become of an event, all of it done."""
    world.both = world.event("t-both", LINKS[:2], partition=1)
    world.store(world.both)
    world.dead = world.event("t-dead", [LINKS[2]])
    world.letter = world.bury_attachment(world.dead, LINKS[2])
    world.refused = world.event("t-refused", [LINKS[3], "ftp://files.example/3.pdf"])
    world.store(world.refused, LINKS[3])
    world.refuse(world.refused, "ftp://files.example/3.pdf")
    world.event("t-nothing")
    world.event("t-no-assignment", [LINKS[4]], assignment=None)
    world.malformed = world.send(b"no json")
    world.bury("event-ingester", world.malformed)
    world.event("t-both", LINKS[:2], partition=1)
    return world.finish()


STATES = {"stored": 3, "refused": 1, "dead_lettered": 1, "waiting": 0, "lost": 0}


def test_a_whole_world_is_ok_and_counted_exactly(whole):
    report = whole.audit()
    assert kinds(report) == []
    assert report.is_ok
    assert report.source == "xact.events.raw"
    assert report.attachments == STATES
    assert report.events == {
        "with_attachments": 3,
        "nothing_to_do": 2,
        "dead_lettered": 1,
        "waiting": 0,
        "lost": 0,
    }
    assert (report.repeated, report.doubled) == (1, 0)
    assert report.facts == {
        "files_listed": 3,
        "files_checked": 3,
        "files_hashed": 3,
        "files_without_hash": 0,
        "rows_without_event": 0,
        "renewed": 0,
    }


def test_an_event_sent_again_with_a_fresh_link_is_one_event_and_no_repeat(world):
    world.store(world.event("t-1", [LINKS[0]]))
    world.store(world.event("t-1", LINKS[:2]), LINKS[1])
    report = world.finish().audit()
    assert kinds(report) == []
    assert (report.repeated, report.facts["renewed"]) == (0, 1)
    assert report.attachments["stored"] == 2
    assert sum(report.events.values()) == report.events["with_attachments"] == 1


def test_an_event_that_first_came_without_links_is_one_with_attachments(world):
    world.event("t-1")
    world.store(world.event("t-1", [LINKS[0]]))
    report = world.finish().audit()
    assert sum(report.events.values()) == report.events["with_attachments"] == 1


def test_a_row_that_was_deleted_is_missed(whole):
    del whole.items(tables.ATTACHMENTS)[0]
    report = whole.audit()
    assert kinds(report) == ["missing_row", "unaccounted"]
    assert report.attachments == STATES | {"stored": 2, "lost": 1}
    (row, lost) = report.problems.told
    assert (row.trace_id, row.attachment_url) == ("t-both", f"files.example, {link(LINKS[0])}")
    assert lost.attachment_url == row.attachment_url


def test_a_failed_row_that_was_deleted_is_missed_though_its_dead_letter_is_there(whole):
    whole.items(tables.FAILED)[:] = [
        row for row in whole.items(tables.FAILED) if row["trace_id"] != "t-dead"
    ]
    report = whole.audit()
    assert kinds(report) == ["missing_row"]
    assert report.attachments == STATES


def test_a_deleted_row_whose_result_retention_took_is_unaccounted_and_its_file_an_orphan(whole):
    topic = whole.topics.downloads_results
    whole.admin.trim(whole.ends(topic))
    del whole.items(tables.ATTACHMENTS)[0]
    assert kinds(whole.audit()) == ["orphan_file", "unaccounted"]


def test_a_file_that_was_deleted_is_missed(whole):
    path = whole.items(tables.ATTACHMENTS)[0]["blob_path"]
    del whole.files.held[path]
    (problem,) = whole.audit().problems.told
    assert (problem.kind, problem.trace_id) == ("missing_file", "t-both")
    assert path.rpartition("/")[0] + "/….pdf" in problem.detail


def test_one_other_byte_in_a_file_is_found_by_its_hash_alone(whole):
    path = whole.items(tables.ATTACHMENTS)[0]["blob_path"]
    whole.files.held[path] = b"C" + whole.files.held[path][1:]
    assert kinds(whole.audit()) == ["wrong_content"]
    assert kinds(whole.audit(content=False)) == []


def test_a_byte_more_in_a_file_is_found_without_reading_it(whole):
    whole.files.held[whole.items(tables.ATTACHMENTS)[0]["blob_path"]] += b"!"
    assert kinds(whole.audit(content=False)) == ["wrong_content"]


def test_rows_without_a_hash_are_compared_by_size_and_counted(whole):
    row = whole.items(tables.ATTACHMENTS)[0]
    row["content_sha256"] = None
    whole.files.held[row["blob_path"]] = b"C" + whole.files.held[row["blob_path"]][1:]
    report = whole.audit()
    assert report.is_ok
    assert (report.facts["files_hashed"], report.facts["files_without_hash"]) == (2, 1)


def test_a_table_that_never_had_hashes_is_audited_by_sizes(whole):
    table = whole.tables[tables.ATTACHMENTS]
    table.columns = tuple(name for name in table.columns if name != "content_sha256")
    report = whole.audit()
    assert report.is_ok
    assert report.facts["files_without_hash"] == 3


def test_an_event_that_was_deleted_from_its_table_is_missed(whole):
    del whole.items(tables.EVENTS)[0]
    (problem,) = whole.audit().problems.told
    assert (problem.kind, problem.trace_id) == ("missing_event", "t-both")


def test_an_event_that_its_writer_has_not_come_to_is_not_missing(whole):
    whole.event("t-new")
    whole.items(tables.EVENTS).pop()
    assert whole.audit().is_ok


@pytest.mark.parametrize(("stage", "trace"), [("download", "t-dead"), ("event-ingester", None)])
def test_a_dead_letter_that_was_deleted_is_missed(whole, stage, trace):
    with whole.state.transaction() as transaction:
        transaction.execute("DELETE FROM dead_letters WHERE stage = ?", (stage,))
    (problem,) = whole.audit().problems.told
    assert (problem.kind, problem.trace_id) == ("unaccounted", trace)


def test_a_dead_letter_of_an_earlier_topic_excuses_no_record_at_its_offset(world):
    record = world.send(b"no json")
    world.bury("event-ingester", record._replace(timestamp_ms=record.timestamp_ms - 60_000))
    report = world.finish().audit()
    assert "unaccounted" in kinds(report)


def test_a_dead_letter_that_is_on_its_way_to_the_ledger_is_enough(world):
    world.bury_attachment(world.event("t-dead", [LINKS[0]]), LINKS[0])
    world.bury("event-ingester", world.send(b"no json"))
    report = world.finish(but=["ledger"]).audit()
    assert kinds(report) == []
    assert (report.attachments["dead_lettered"], report.events["dead_lettered"]) == (1, 1)


def test_without_a_ledger_dead_letters_are_read_from_their_topics(whole):
    whole.state = None
    report = whole.audit()
    assert kinds(report) == []
    assert report.attachments == STATES


def test_a_dead_letter_counts_before_its_row_is_written(world):
    record = world.event("t-dead", [LINKS[0]])
    world.bury("download", world.task(record, LINKS[0]))
    assert world.finish().audit().attachments["dead_lettered"] == 1


def test_a_file_without_a_row_is_an_orphan(whole):
    whole.files.held["documentsReceived/A-1/t-9/A-1_stray.pdf"] = b"x"
    (problem,) = whole.audit().problems.told
    assert problem.kind == "orphan_file"
    assert "documentsReceived/A-1/t-9/….pdf" in problem.detail


def test_no_finding_tells_a_links_path_or_secret_or_a_files_name(whole):
    malformed = "https:secret@[hidden/Jane-Roe.pdf?X-Amz-Signature=secret"
    stored = whole.items(tables.ATTACHMENTS)
    whole.event("t-lost", [url(9, "Jane-Roe.pdf"), malformed])
    whole.finish()
    stored.append(dict(stored[0]))
    del whole.files.held[stored[1]["blob_path"]]
    whole.files.held[stored[2]["blob_path"]] += b"!"
    whole.files.held["documentsReceived/A-1/t-9/Jane-Roe.pdf"] = b"x"
    problems = whole.audit().problems.told
    assert {problem.kind for problem in problems} == {
        *("missing_file", "wrong_content", "orphan_file", "doubled_row", "unaccounted")
    }
    told = str(problems)
    for hidden in ("Jane", "ecret", "hidden", "A-1_file", "/0/", "file.pdf"):
        assert hidden not in told
    assert link(malformed) in {problem.attachment_url for problem in problems}


def test_a_second_file_beside_the_first_is_no_orphan_when_its_row_was_absorbed(whole):
    """One link, downloaded twice, whose host gave other content the second time."""
    row = whole.items(tables.ATTACHMENTS)[0]
    second = beside(row["blob_path"], row["attachment_url"])
    whole.files.held[second] = b"other content"
    result = replace(whole.result(whole.both, LINKS[0]), blob_path=second)
    whole.send(result, whole.topics.downloads_results)
    whole.finish()
    assert kinds(whole.audit()) == []


def test_a_lost_attachment_is_advised_what_the_window_of_repeats_allows(world):
    world.event("t-1", [LINKS[0]])
    (problem,) = world.finish().audit().problems.told
    assert "with a fresh link, or as it is when 1d have passed" in problem.detail


@pytest.mark.parametrize("lies_in", ["cached", "results", "tier"])
def test_a_file_whose_row_is_on_its_way_is_no_orphan(whole, lies_in):
    record = whole.event("t-late", [LINKS[5]])
    whole.finish()
    whole.put_file(record, LINKS[5])
    match lies_in:
        case "cached":
            whole.send(whole.cached(record, LINKS[5]), whole.topics.downloads_cached)
        case "results":
            whole.send(whole.result(record, LINKS[5]), whole.topics.downloads_results)
        case "tier":
            sent = whole.send(whole.cached(record, LINKS[5]), whole.topics.downloads_cached)
            whole.delay("upload", sent)
            whole.finish()
    report = whole.audit()
    assert kinds(report) == []
    assert report.attachments == STATES | {"waiting": 1}


def test_two_rows_of_one_attachment_are_told(whole):
    whole.items(tables.ATTACHMENTS).append(dict(whole.items(tables.ATTACHMENTS)[0]))
    report = whole.audit()
    assert kinds(report) == ["doubled_row"]
    assert report.doubled == 1
    assert report.attachments == STATES


@pytest.mark.parametrize("table", [tables.EVENTS, tables.FAILED])
def test_two_rows_of_one_key_are_told_in_every_table(whole, table):
    whole.items(table).append(dict(whole.items(table)[0]))
    assert kinds(whole.audit()) == ["doubled_row"]


def test_what_was_stored_after_it_had_failed_is_stored(world):
    record = world.event("t-1", [LINKS[0]])
    world.bury_attachment(record, LINKS[0])
    world.store(record)
    report = world.finish().audit()
    assert kinds(report) == []
    assert report.attachments == dict.fromkeys(STATES, 0) | {"stored": 1}


@pytest.mark.parametrize("stage", ["event-ingester", "download", "upload", "result-processor"])
def test_what_lies_before_any_stage_waits(world, stage):
    record = world.event("t-1", [LINKS[0]])
    if stage == "download":
        world.task(record, LINKS[0])
    elif stage == "upload":
        world.send(world.cached(record, LINKS[0]), world.topics.downloads_cached)
    elif stage == "result-processor":
        world.send(world.result(record, LINKS[0]), world.topics.downloads_results)
    report = world.finish(but=[stage]).audit()
    assert kinds(report) == []
    assert report.attachments == dict.fromkeys(STATES, 0) | {"waiting": 1}


@pytest.mark.parametrize("stage", ["event-ingester", "download", "upload"])
def test_what_lies_in_a_tier_or_came_back_from_it_waits(world, stage):
    record = world.event("t-1", [LINKS[0]])
    first = record
    if stage == "download":
        first = world.task(record, LINKS[0])
    elif stage == "upload":
        first = world.send(world.cached(record, LINKS[0]), world.topics.downloads_cached)
    delayed = world.delay(stage, first)
    world.finish()
    assert world.audit().attachments["waiting"] == 1
    world.admin.reset_offsets(world.pipeline.scheduler_group, world.ends(delayed.topic))
    assert world.audit().attachments["lost"] == 1
    world.send(first.value, world.route(stage).re_entry(first.topic), headers=first.headers)
    assert world.audit().attachments["waiting"] == 1


def test_an_attachment_that_is_nowhere_is_lost(world):
    world.event("t-1", [LINKS[0]])
    report = world.finish().audit()
    assert report.attachments["lost"] == 1
    (problem,) = report.problems.told
    assert (problem.kind, problem.trace_id) == ("unaccounted", "t-1")
    assert problem.attachment_url == f"files.example, {link(LINKS[0])}"


def test_a_record_nobody_can_read_waits_until_the_ingester_comes_to_it(world):
    world.send(b"no json")
    assert world.finish(but=["event-ingester"]).audit().events["waiting"] == 1
    report = world.finish().audit()
    assert report.events["lost"] == 1
    assert "offset 0 of xact.events.raw[0]" in report.problems.told[0].detail


def test_events_of_another_domain_are_theirs_and_an_unknown_one_is_dead(world):
    world.send({"traceId": "t"}, headers=[("domain", b"claimx")])
    record = world.send({"traceId": "t", "type": "x.y"}, headers=[("domain", b"nobody")])
    world.bury("event-ingester", record)
    report = world.finish().audit()
    assert kinds(report) == []
    assert sum(report.events.values()) == report.events["dead_lettered"] == 1


def test_an_event_that_died_whole_takes_its_attachments_with_it(world):
    world.bury("event-ingester", world.event("t-1", LINKS[:2]))
    report = world.finish().audit()
    assert kinds(report) == []
    assert (report.events["dead_lettered"], report.attachments["dead_lettered"]) == (1, 2)


def test_raw_trimmed_past_both_groups_is_a_finding(whole):
    for number in range(4):
        whole.event(f"t-gone-{number}")
    del whole.items(tables.EVENTS)[-4:]
    assert whole.audit().is_ok
    whole.admin.trim(whole.ends(whole.topics.events))
    report = whole.audit()
    assert set(kinds(report)) == {"expired_range"}
    told = " ".join(problem.detail for problem in report.problems.told)
    for reader in ("xact-event-ingester", "xact-event-writer", "xact_events"):
        assert reader in told


def test_a_range_that_a_group_passed_by_stays_a_finding(whole):
    gone = ExpiredRange("xact-download", whole.topics.downloads_pending, 0, 3, 5, whole.now_ms)
    ExpiredRanges(whole.state).record(gone)
    assert kinds(whole.audit()) == ["expired_range"]


def test_progress_reaches_what_there_is_to_do(whole):
    told = []
    whole.audit(progress=lambda done, total: told.append((done, total)))
    assert told
    assert all(done <= total for done, total in told)


def test_memory_grows_by_a_few_bytes_for_each_event_and_not_by_its_text(world):
    peaks = []
    for first in (0, EVENTS):
        for number in range(first, first + EVENTS):
            world.event(f"t-{number}", [url(number, "n" * 1_200)])
        world.finish(but=["event-ingester"])
        tracemalloc.start()
        assert world.audit().attachments["waiting"] == first + EVENTS
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < EVENTS * 300
