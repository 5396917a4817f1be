import csv
import fcntl
import gzip
import os
import shutil
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.errors import Unusable
from forebay.engine.csv_files import cells
from forebay.engine.csv_values import as_lines
from forebay.mods.kafka_consumer.backup_rows import COLUMNS, HEAD, Polled, record_of, rows_of
from forebay.testing.waiting import eventually
from unit.mods.backup_records import (
    SOON_SECONDS,
    Events,
    backup_to,
    offsets,
    polled,
    read,
    wait_until_written,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kafka_backup.csv"


def row(offset, **more):
    return as_lines(rows_of([Polled(1_705_312_801_123, polled(offset, **more))]))


def test_the_columns_are_the_documented_ones_and_one_more_at_the_end(path):
    with backup_to(path) as backup:
        assert backup.offer(polled(1000, b'{"customer":"john","amount":99.99}', b"order_123"))
    with path.open(newline="") as file:
        (found,) = csv.DictReader(file)
    assert found == {
        "timestamp": "2024-01-15T10:00:01.123Z",
        "topic": "orders",
        "partition": "0",
        "offset": "1000",
        "key": "order_123",
        "value": '{"customer":"john","amount":99.99}',
        "message_size": "34",
        "encoding": "utf-8",
    }
    assert list(found) == [
        *("timestamp", "topic", "partition", "offset", "key", "value", "message_size", "encoding")
    ]


BYTES = st.one_of(st.none(), st.binary(max_size=30), st.text(max_size=30).map(str.encode))


@given(BYTES, BYTES, st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=4))
def test_key_value_and_headers_come_back_byte_for_byte(value, key, headers):
    record = polled(3, value, key, headers)
    written = cells(as_lines(rows_of([Polled(1_705_312_801_123, record)])))
    assert record_of(COLUMNS, written) == record._replace(timestamp_ms=1_705_312_801_123)
    assert written[6] == str(len(value or b""))


def test_quotes_line_ends_nul_binary_null_and_nothing_stay_apart_in_the_file(path):
    values = [
        b'a\r\n"b",\'\x00',
        b"\n",
        b"\r",
        b"\xff\x00",
        None,
        b"",
        b"null",
        b"=1+1",
        b"\xef\xbb",
    ]
    with backup_to(path) as backup:
        for offset, value in enumerate(values):
            backup.offer(polled(offset, value, None if offset % 2 else value))
    found = read(path)
    assert [record.value for record in found] == values
    assert [record.key for record in found] == [
        None if offset % 2 else value for offset, value in enumerate(values)
    ]


def test_a_full_batch_is_written_without_waiting_for_the_interval(path):
    with backup_to(path, batch_size=3) as backup:
        for offset in range(2):
            backup.offer(polled(offset))
        assert not path.exists()
        backup.offer(polled(2))
        eventually(lambda: backup.backed_up == 3)
        assert offsets(path) == [0, 1, 2]


def test_a_batch_that_never_fills_is_written_after_the_interval(path):
    with backup_to(path, flush_seconds=0.05) as backup:
        backup.offer(polled(0))
        eventually(lambda: backup.backed_up == 1)
        assert offsets(path) == [0]


def test_closing_writes_the_rest_and_tells_the_end_once(path):
    events = Events()
    with backup_to(path, events) as backup:
        backup.offer(polled(0))
        backup.close()
        backup.close()
    assert offsets(path) == [0]
    assert [told["backed_up"] for told in events.named("backup.closed")] == [1]
    assert events.named("backup.lost") == []
    assert not backup.offer(polled(1))
    assert backup.dropped == 1


def test_a_restart_appends_and_writes_no_second_first_line(path):
    for offset in range(3):
        with backup_to(path) as backup:
            backup.offer(polled(offset))
    assert offsets(path) == [0, 1, 2]
    assert path.read_bytes().count(b"timestamp,topic") == 1


def test_two_instances_write_to_two_files(tmp_path):
    with backup_to(tmp_path / "a.csv") as one, backup_to(tmp_path / "b.csv") as other:
        one.offer(polled(1))
        other.offer(polled(2))
    assert (offsets(tmp_path / "a.csv"), offsets(tmp_path / "b.csv")) == ([1], [2])


def test_a_second_instance_on_one_file_says_so_and_goes_on_when_the_first_has_ended(path):
    events = Events()
    with backup_to(path, events, flush_seconds=SOON_SECONDS) as second:
        with backup_to(path, flush_seconds=SOON_SECONDS) as first:
            first.offer(polled(0))
            wait_until_written(first, 1)
            second.offer(polled(1))
            eventually(lambda: "Another instance writes to" in second.trouble)
        wait_until_written(second, 1)
    assert offsets(path) == [0, 1]
    assert second.trouble == ""
    (told,) = events.named("backup.failed")
    assert (told["messages_held"], told["file_path"]) == (1, str(path))


def test_what_a_killed_writer_left_half_done_is_taken_off_and_nothing_else(path):
    whole = HEAD + row(0) + row(1, value=b'"a"\n"b"\xc3\xa4', headers=[("h", b'"\n')])
    ends = [len(HEAD), len(HEAD) + len(row(0)), len(whole)]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with backup_to(path) as backup:
            backup.offer(polled(5))
        complete = sum(cut >= end - 2 for end in ends[1:])  # the line end alone may be missing
        assert offsets(path) == [*range(complete), 5], cut


def test_a_renamed_file_is_left_alone_and_a_new_one_begun(path):
    rotated = path.with_name("kafka_backup.csv.1")
    with backup_to(path, flush_seconds=SOON_SECONDS) as backup:
        backup.offer(polled(0))
        wait_until_written(backup, 1)
        path.rename(rotated)
        backup.offer(polled(1))
        wait_until_written(backup, 2)
        path.unlink()
        backup.offer(polled(2))
    assert (offsets(rotated), offsets(path)) == ([0], [2])


def test_a_copied_and_truncated_file_begins_again_without_a_hole(path):
    copy = path.with_name("kafka_backup.csv.1")
    with backup_to(path, batch_size=100) as backup:
        for offset in range(100):
            backup.offer(polled(offset))
        wait_until_written(backup, 100)
        shutil.copy(path, copy)
        os.truncate(path, 0)
        backup.offer(polled(100))
    assert offsets(copy) == [*range(100)]
    assert offsets(path) == [100]
    assert path.read_bytes().startswith(HEAD)


def test_a_first_line_that_a_truncation_took_is_missed_by_nobody(path):
    path.write_bytes(row(3))
    with backup_to(path) as backup:
        backup.offer(polled(4))
    assert offsets(path) == [3, 4]


def test_a_rotated_file_is_read_after_it_was_compressed(path):
    with backup_to(path) as backup:
        backup.offer(polled(0))
    packed = path.with_suffix(".csv.gz")
    with path.open("rb") as plain, gzip.open(packed, "wb") as compressed:
        shutil.copyfileobj(plain, compressed)
    assert offsets(packed) == [0]


def link(place, target):
    """In one step: there is no moment at which the writer would make a file of its own there."""
    draft = place.with_name("draft")
    draft.symlink_to(target)
    draft.replace(place)


def test_a_queue_that_is_full_drops_and_counts_and_tells_each_burst_once(tmp_path):
    place, real = tmp_path / "b.csv", tmp_path / "real.csv"
    events = Events()
    written = 0
    with backup_to(place, events, queue_bytes_max=5_000, flush_seconds=SOON_SECONDS) as backup:
        for burst in (1, 2):
            link(place, "/dev/full")
            taken = [backup.offer(polled(offset, b"x" * 500)) for offset in range(100)]
            assert taken == [True] * taken.count(True) + [False] * taken.count(False)
            assert backup.dropped == burst * taken.count(False) > 0
            assert len(events.named("backup.dropping")) == burst
            link(place, real)
            written += taken.count(True)
            wait_until_written(backup, written)
        assert backup.backed_up + backup.dropped == 200
    assert len(offsets(real)) == backup.backed_up


def test_a_record_larger_than_the_queue_is_taken_where_it_is_alone(path):
    with backup_to(path, queue_bytes_max=1_000) as backup:
        assert backup.has_room_for(polled(0, b"x" * 100_000))
        assert backup.offer(polled(0, b"x" * 100_000))
        assert not backup.has_room_for(polled(1))
        assert not backup.offer(polled(1))
    assert offsets(path) == [0]


def test_a_full_disk_is_told_once_and_every_row_that_was_lost_is_counted():
    events = Events()
    with backup_to("/dev/full", events, flush_seconds=SOON_SECONDS) as backup:
        for offset in range(3):
            backup.offer(polled(offset))
            eventually(lambda: "There is no room for rows" in backup.trouble)
    (told,) = events.named("backup.failed")
    assert "There is no room for rows" in told["error_message"]
    (lost,) = events.named("backup.lost")
    assert (lost["messages_lost"], backup.backed_up, backup.dropped) == (3, 0, 3)


def test_rows_held_while_the_disk_was_full_are_written_when_there_is_room(tmp_path):
    place, real = tmp_path / "b.csv", tmp_path / "real.csv"
    link(place, "/dev/full")
    with backup_to(place, flush_seconds=SOON_SECONDS) as backup:
        backup.offer(polled(0))
        eventually(lambda: backup.trouble)
        link(place, real)
        backup.offer(polled(1))
        wait_until_written(backup, 2)
    assert offsets(real) == [0, 1]


@pytest.mark.parametrize("place", ["folder", "file/inside", "missing/b.csv"])
def test_a_path_that_is_no_file_is_told_and_stops_nobody(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    events = Events()
    with backup_to(tmp_path / place, events, flush_seconds=SOON_SECONDS) as backup:
        assert backup.offer(polled(0))
        eventually(lambda: backup.trouble)
    (told,) = events.named("backup.failed")
    assert "cannot be opened for writing" in told["error_message"]
    assert backup.dropped == 1


def test_a_file_of_something_else_is_left_as_it_is(path):
    path.write_text("name,price\nhammer,3\n")
    with backup_to(path, flush_seconds=SOON_SECONDS) as backup:
        backup.offer(polled(0))
        eventually(lambda: "Move the file away" in backup.trouble)
    assert path.read_text() == "name,price\nhammer,3\n"
    with pytest.raises(Unusable, match="is no backup of the mod"):
        read(path)


def test_the_documents_own_files_without_an_encoding_are_read(path):
    path.write_text(
        "timestamp,topic,partition,offset,key,value,message_size\n"
        '2024-01-15T10:00:01.123Z,orders,0,1000,order_123,"{""customer"":""john""}",45\n'
    )
    (found,) = read(path)
    assert (found.key, found.value, found.offset) == (b"order_123", b'{"customer":"john"}', 1000)


def test_rows_that_were_changed_by_hand_are_counted_and_the_others_read(path):
    path.write_bytes(HEAD + row(0) + row(1).replace(b"utf-8", b"rot13") + row(2) + b"\r\n1,2\r\n")
    assert offsets(path) == [0, None, 2, None]


def test_a_writer_that_hangs_holds_up_neither_offers_nor_the_end(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    try:
        with backup_to(pipe, batch_size=1) as backup:
            for offset in range(5):
                assert backup.offer(polled(offset, b"x" * 50_000))
            backup.close(timeout_seconds=0.1)
            assert backup.backed_up + backup.dropped == 5
            assert backup.dropped > 0
    finally:
        os.set_blocking(reader, False)
        with suppress(BlockingIOError):
            while os.read(reader, 1 << 20):
                pass
        os.close(reader)


def test_only_its_user_may_read_whole_records(path):
    with backup_to(path) as backup:
        backup.offer(polled(0))
    assert path.stat().st_mode & 0o077 == 0


def test_the_lock_goes_with_the_backup(path):
    with backup_to(path, flush_seconds=SOON_SECONDS) as backup:
        backup.offer(polled(0))
        wait_until_written(backup, 1)
        with path.open("rb") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
