"""From an event to its files and rows, and to a named end for all that cannot get there."""

from contextlib import ExitStack
from dataclasses import replace

import orjson
import pytest

from forebay.domains.xact.tables import ATTACHMENT_COLUMNS, FAILED_COLUMNS
from forebay.outbound.errors import DownloadFailed
from unit.domains.xact.events import HOST, event_value
from unit.domains.xact.world import SETTINGS, World, content_of

A, B = f"{HOST}/p/a.pdf?sig=1", f"{HOST}/p/b.pdf?sig=1"
PATH = "documentsReceived/A-1001/tr-1/A-1001_a.pdf"


@pytest.fixture
def world(tmp_path):
    with ExitStack() as closing:
        yield World(tmp_path, SETTINGS, closing)


def links(*urls, **fields):
    return event_value(data={"attachments": list(urls)}, **fields)


def stored(world):
    return world.run.rows("result-processor")


def failed(world):
    return world.run.rows("failed-writer")


def letters(world):
    return [(letter.stage, letter.category) for letter in world.run.dead_letters]


def test_an_events_attachments_are_stored_and_recorded(world):
    world.send(links(A, B))
    world.run.advance(6)
    assert world.file(PATH) == content_of(A)
    assert [row["blob_path"] for row in stored(world)] == [PATH, PATH.replace("_a.", "_b.")]
    assert all(set(row) == set(ATTACHMENT_COLUMNS) for row in stored(world))
    assert [row["trace_id"] for row in world.run.rows("event-writer")] == ["tr-1"]
    assert failed(world) == []
    assert letters(world) == []


def test_the_cached_file_goes_when_its_result_is_there(world):
    world.send(links(A))
    world.run.advance(6)
    assert len(stored(world)) == 1
    assert world.cached() == []


def test_records_carry_their_domain_and_the_trace_id_as_key(world):
    world.send(links(A), key=b"another key")
    for topic in ("xact.downloads.pending", "xact.downloads.cached", "xact.downloads.results"):
        (record,) = world.run.records(topic)
        assert record.key == b"tr-1"
        assert ("domain", b"xact") in record.headers


def test_a_task_carries_its_traces_and_no_other_header_of_the_event(world):
    world.send(links(A, "ftp://x"), headers={"traceparent": "00-1", "authorization": "Bearer x"})
    for topic in ("xact.downloads.pending", "xact.downloads.results"):
        names = {name for record in world.run.records(topic) for name, _ in record.headers}
        assert {"traceparent", "domain"} <= names
        assert "authorization" not in names


def test_a_busy_host_is_asked_again_and_its_file_is_stored(world):
    world.host.answers[A] = [DownloadFailed("busy", "The host is busy.")] * 3
    world.send(links(A))
    world.run.advance(20)
    assert len(world.host.asked) == 4
    assert [row["bytes_downloaded"] for row in stored(world)] == [len(content_of(A))]


def test_a_host_that_stays_busy_ends_in_a_dead_letter_and_a_failed_row(world):
    world.host.answers[A] = [DownloadFailed("busy", "The host is busy.")] * 99
    world.send(links(A, B))
    world.run.advance(40)
    assert letters(world) == [("download", "transient")]
    (row,) = failed(world)
    assert set(row) == set(FAILED_COLUMNS)
    assert (row["attachment_url"], row["error_message"]) == (A, "The host is busy.")
    assert len(stored(world)) == 1


def test_a_failure_for_good_is_not_tried_again(world):
    world.host.answers[A] = [DownloadFailed("expired", "The link has expired.")] * 9
    world.send(links(A))
    world.run.advance(20)
    assert world.host.asked == [A]
    assert [row["error_category"] for row in failed(world)] == ["permanent"]


def test_a_link_that_is_refused_gets_its_row_and_the_good_ones_go_on(world):
    world.send(links("http://files.example/a.pdf", "https://10.0.0.1/x.pdf", B))
    world.run.advance(6)
    assert sorted(row["error_category"] for row in failed(world)) == ["refused", "refused"]
    assert [row["attachment_url"] for row in stored(world)] == [B]
    assert letters(world) == []


def test_a_repeat_makes_no_second_task(world):
    world.send(links(A))
    world.run.advance(6)
    world.send(links(A))
    world.run.advance(6)
    assert world.host.asked == [A]
    assert len(stored(world)) == 1


def test_a_refused_link_is_no_repeat_so_its_event_may_be_sent_again_at_once(world):
    refused = "https://other.example/a.pdf"
    world.send(links(A, refused))
    world.run.advance(6)
    world.send(links(A, refused))
    world.run.advance(6)
    assert world.host.asked == [A]
    assert [row["attachment_url"] for row in failed(world)] == [refused] * 2
    assert letters(world) == []


def test_a_refused_host_that_is_allowed_then_is_downloaded_when_its_event_comes_again(tmp_path):
    url = "https://other.example/a.pdf"
    with ExitStack() as closing:
        world = World(tmp_path, SETTINGS, closing)
        world.send(links(url))
        world.run.advance(6)
        assert [row["error_category"] for row in failed(world)] == ["refused"]
        assert "have the event sent again" in failed(world)[0]["error_message"]
    mended = replace(SETTINGS, allowed_hosts=("files.example", "other.example"))
    with ExitStack() as closing:
        world = World(tmp_path, mended, closing)
        world.send(links(url))
        world.run.advance(6)
        assert [row["attachment_url"] for row in stored(world)] == [url]


def test_the_same_event_with_a_fresh_link_is_handled_for_that_link(world):
    fresh = A.replace("sig=1", "sig=2")
    world.send(links(A))
    world.run.advance(6)
    world.send(links(fresh))
    world.run.advance(6)
    assert world.host.asked == [A, fresh]
    assert [row["attachment_url"] for row in stored(world)] == [A, fresh]


@pytest.mark.parametrize("data", [{"attachments": []}, {"attachments": [A], "assignmentId": None}])
def test_an_event_with_nothing_to_do_is_recorded_and_done(world, data):
    world.send(event_value(data=data))
    world.run.advance(6)
    assert world.host.asked == []
    assert len(world.run.rows("event-writer")) == 1
    assert letters(world) == []


def test_what_is_no_event_is_a_dead_letter_as_it_came(world):
    world.send(b"{\xff")
    world.run.advance(6)
    assert letters(world) == [("event-ingester", "undecodable")]
    (letter,) = world.run.dead_letters
    assert letter.record.value == b"{\xff"
    assert world.run.rows("event-writer") == []


def test_an_unknown_domain_is_a_dead_letter_and_another_pipelines_is_left_alone(world):
    world.send(links(A), headers={"domain": "mars"})
    world.send(links(A), headers={"domain": "claimx"})
    world.run.advance(6)
    assert letters(world) == [("event-ingester", "unknown_domain")]
    assert world.host.asked == []


def test_each_of_ten_thousand_attachments_of_one_event_has_its_end(world):
    urls = [f"http://files.example/{number}.pdf" for number in range(10_000)]
    world.send(links(*urls, A))
    world.run.advance(6)
    assert len(failed(world)) == 10_000
    assert len(stored(world)) == 1


def test_a_cached_file_that_was_lost_is_downloaded_again_three_times_at_most(world):
    world.send(links(A))
    (cached,) = world.run.records("xact.downloads.cached")
    message = orjson.loads(cached.value) | {"attachment_url": B, "destination_path": "x/y/z/b.pdf"}
    world.run.send("xact.downloads.cached", orjson.dumps(message))
    world.run.advance(6)
    assert world.host.asked == [A, B]
    assert world.file("x/y/z/b.pdf") == content_of(B)
    lost = message | {"metadata": {"cache_misses": 3}, "destination_path": "x/y/z/c.pdf"}
    world.run.send("xact.downloads.cached", orjson.dumps(lost))
    world.run.advance(6)
    assert ("upload", "cache_lost") in letters(world)
    assert len(failed(world)) == 1


def test_a_cache_that_was_moved_or_is_mounted_elsewhere_still_gives_its_files(world):
    world.send(links(A))
    (cached,) = world.run.records("xact.downloads.cached")
    message = orjson.loads(cached.value)
    moved = message | {"local_cache_path": "../old/mount/" + message["local_cache_path"][-35:]}
    world.run.send("xact.downloads.cached", orjson.dumps(moved))
    world.run.advance(6)
    assert world.file(PATH) == content_of(A)
    assert letters(world) == []


def test_a_path_outside_the_cache_is_never_read(world):
    world.send(links(A))
    (cached,) = world.run.records("xact.downloads.cached")
    forged = orjson.loads(cached.value) | {"local_cache_path": "/etc/passwd"}
    world.run.send("xact.downloads.cached", orjson.dumps(forged))
    world.run.advance(6)
    assert letters(world) == [("upload", "permanent")]


def test_a_task_that_is_handled_again_the_next_day_meets_its_row(world):
    world.send(links(A))
    (task,) = world.run.records("xact.downloads.pending")
    world.run.advance(6)
    world.run.send("xact.downloads.pending", task.value)
    world.run.advance(6)
    days = {row["event_date"] for row in stored(world)}
    assert len(days) == 1
