import csv
import fcntl
import gzip
import io
import json
import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.errors import AccessDenied, Full, Unavailable, Unusable
from forebay.core.records import Record
from forebay.engine.csv_values import as_lines
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.letter_file import CsvLetters, Locked, read_letters
from forebay.engine.letter_rows import COLUMNS, letter_of, row_of
from forebay.testing.waiting import eventually
from unit.engine.letter_writer import FAILED_MS, dead

WRITER = Path(__file__).with_name("letter_writer.py")

THE_MODS = "".join(f"{name}," for name in COLUMNS[:-1]).rstrip(",")


def offsets_in(path):
    found, unreadable = read_letters(path)
    return [letter.record.offset for letter in found], unreadable


@pytest.fixture
def path(tmp_path):
    return tmp_path / "letters" / "kafka_dlq.csv"


@pytest.fixture
def letters(path):
    letters = CsvLetters(path)
    yield letters
    letters.close()


def test_the_columns_are_those_of_the_mod_and_one_more_at_the_end(letters, path):
    letters.write([dead(7, b'{"customer":"john"}', b"order_125")])
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert list(row) == [
        *("timestamp", "topic", "partition", "offset", "key", "value", "error_type"),
        *("error_message", "stack_trace", "processing_time_ms", "retry_count", "encoding"),
    ]
    assert row == {
        "timestamp": "2024-01-15T10:05:23.456Z",
        "topic": "orders",
        "partition": "0",
        "offset": "7",
        "key": "order_125",
        "value": '{"customer":"john"}',
        "error_type": "TimeoutError",
        "error_message": "the bank is busy",
        "stack_trace": 'Traceback:\n  File "x"\n',
        "processing_time_ms": "",
        "retry_count": "0",
        "encoding": "utf-8",
    }


def test_bytes_that_are_no_text_are_base64_with_a_mark(letters, path):
    letters.write([dead(value=b"\xff\x00", key=None)])
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["key"], row["value"]) == ("", "/wA=")
    assert json.loads(row["encoding"]) == {"key": "null", "value": "base64"}


BYTES = st.one_of(
    st.none(), st.binary(max_size=30), st.text(max_size=30).map(lambda t: t.encode("utf-8"))
)
NAMES = st.text(max_size=5).filter(lambda name: not name.startswith("forebay-"))


@given(key=BYTES, value=BYTES, headers=st.lists(st.tuples(NAMES, BYTES), max_size=4))
def test_key_value_and_headers_come_back_byte_for_byte(key, value, headers):
    lines = as_lines([row_of(dead(3, value, key, headers))]).decode()
    (row,) = csv.reader(io.StringIO(lines, newline=""))
    record = letter_of(dict(zip(COLUMNS, row, strict=True))).record
    assert record[:6] == (value, key, headers, "orders", 0, 3)


def test_null_empty_and_twice_the_same_header_stay_apart_in_the_file(letters, path):
    headers = [("a", None), ("a", b""), ("a", b"\xff"), ("b", b'"quoted",\r\n')]
    written = [
        dead(0, None, b""),
        dead(1, b"", None),
        dead(2, b'a\r\n"b",\'\x00', b"\xff", headers),
    ]
    letters.write(written)
    found, unreadable = read_letters(path)
    assert unreadable == 0
    assert [letter.record[:3] for letter in found] == [
        (None, b"", []),
        (b"", None, []),
        (b'a\r\n"b",\'\x00', b"\xff", headers),
    ]
    assert {letter.failed_ms for letter in found} == {FAILED_MS}


def test_a_value_of_megabytes_is_read_back(letters, path):
    letters.write([dead(value=b'"\n' * 2_000_000), dead(1)])
    letters.close()
    CsvLetters(path).write([dead(2)])
    assert offsets_in(path) == ([0, 1, 2], 0)


def test_a_record_from_a_tier_is_filed_under_the_place_it_came_from(letters, path):
    letter = dead(7)
    returned = letter.record._replace(
        topic="shop-charge.orders.again", offset=99, headers=[("forebay-id", b"x"), ("mine", b"y")]
    )
    letters.write([DeadLetter(returned, letter.envelope)])
    ((found,), _) = read_letters(path)
    assert (found.record.topic, found.record.offset) == ("orders", 7)
    assert found.record.headers == [("mine", b"y")]


def test_what_is_written_is_there_for_others_before_write_returns(letters, path):
    letters.write([dead(0)])
    assert offsets_in(path) == ([0], 0)
    letters.write([])
    letters.write([dead(1), dead(2)])
    assert offsets_in(path) == ([0, 1, 2], 0)


@pytest.mark.parametrize("end", ["header", "row", "quotes", "stack", "last column"])
def test_what_a_killed_writer_left_half_done_is_taken_off_and_nothing_else(path, end):
    """Cut at every kind of place in the second row."""
    CsvLetters(path).write([dead(0), dead(1, b'"a"\n"b"', headers=[("h", b'"\n')])])
    whole = path.read_bytes()
    first_end = whole.index(b"utf-8") + len(b"utf-8\r\n")
    cut = {
        "header": 20,
        "row": first_end + 30,
        "quotes": whole.rindex(b'""b""'),
        "stack": whole.rindex(b"  File"),
        "last column": len(whole) - 5,
    }[end]
    path.write_bytes(whole[:cut])
    left = [] if end == "header" else [0]
    if end != "header":
        assert offsets_in(path) == (left, 1)
    CsvLetters(path).write([dead(5), dead(6)])
    assert offsets_in(path) == ([*left, 5, 6], 0)


def test_cut_anywhere_the_next_writer_loses_no_whole_row_and_keeps_no_half_one(tmp_path):
    whole = as_lines([COLUMNS, row_of(dead(0)), row_of(dead(1, b'"\n', headers=[("h", b"\n")]))])
    ends = [at for at in range(len(whole)) if whole.startswith(b"2024-01-15", at)] + [len(whole)]
    path = tmp_path / "dlq.csv"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        letters = CsvLetters(path)
        letters.write([dead(5)])
        letters.close()
        kept, unreadable = offsets_in(path)
        # The line end alone may be missing: the row before it is whole.
        complete = sum(cut >= end - 2 for end in ends[1:])
        assert (kept, unreadable) == ([*range(complete), 5], 0), cut


def test_a_last_row_that_a_person_left_without_a_line_end_is_kept(letters, path):
    letters.write([dead(0)])
    path.write_bytes(path.read_bytes().rstrip(b"\r\n"))
    letters.write([dead(1)])
    assert offsets_in(path) == ([0, 1], 0)


def test_a_file_rewritten_in_place_by_another_tool_is_looked_at_from_its_beginning(letters, path):
    letters.write([dead(0, b"x" * 50)])
    path.write_bytes(as_lines([COLUMNS, row_of(dead(3, b'"\n' * 500))]))
    letters.write([dead(4)])
    assert offsets_in(path) == ([3, 4], 0)


@contextmanager
def room_for(length):
    """The disk takes so many bytes of a file, then no more; what fits is written."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_in_the_middle_of_a_batch_keeps_none_of_it(letters, path):
    letters.write([dead(0)])
    before = path.read_bytes()
    batch = [dead(number) for number in range(1, 50)]
    with room_for(len(before) + 1_000), pytest.raises(Full, match="None was written"):
        letters.write(batch)
    assert path.read_bytes() == before
    letters.write(batch)
    assert offsets_in(path) == (list(range(50)), 0)


def test_a_full_device_is_told_and_the_next_try_may_pass():
    letters = CsvLetters(Path("/dev/full"))
    for _ in range(2):
        with pytest.raises(Full, match="No space left on device"):
            letters.write([dead()])
    letters.close()


def test_a_file_renamed_under_its_writer_is_begun_anew(letters, path):
    letters.write([dead(0)])
    rotated = path.with_suffix(".csv.1")
    path.rename(rotated)
    letters.write([dead(1)])
    letters.write([dead(2)])
    assert offsets_in(rotated) == ([0], 0)
    assert offsets_in(path) == ([1, 2], 0)
    path.unlink()
    letters.write([dead(3)])
    assert offsets_in(path) == ([3], 0)


def test_a_rotated_file_is_read_after_it_was_compressed(letters, path):
    letters.write([dead(0), dead(1)])
    packed = path.with_suffix(".csv.1.gz")
    with path.open("rb") as plain, gzip.open(packed, "wb") as compressed:
        shutil.copyfileobj(plain, compressed)
    assert offsets_in(packed) == ([0, 1], 0)
    packed.write_bytes(packed.read_bytes()[:-40])
    kept, unreadable = offsets_in(packed)
    assert (kept in ([], [0]), unreadable >= 1) == (True, True)


def start_writer(path, first):
    return subprocess.Popen(
        [sys.executable, WRITER, path, str(first), "200"],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_and_a_rotation_lose_and_double_nothing(path):
    writers = [start_writer(path, first) for first in (0, 1_000)]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    rotated = [path.with_suffix(f".csv.{n}") for n in range(3)]
    for target in rotated:
        eventually(lambda: path.exists() and path.stat().st_size > 2_000, every_seconds=0)
        path.rename(target)
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    found = [offsets_in(file) for file in (*rotated, path) if file.exists()]
    assert [unreadable for _, unreadable in found] == [0] * len(found)
    kept = sorted(offset for offsets, _ in found for offset in offsets)
    assert kept == [*range(200), *range(1_000, 1_200)]


def test_a_lock_that_another_holds_is_waited_for_a_moment_only(letters, path):
    letters.write([dead(0)])
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Locked, match="locked by another process"):
            letters.write([dead(1)])
    letters.write([dead(1)])
    assert offsets_in(path) == ([0, 1], 0)


def test_a_place_that_cannot_be_looked_at_any_more_is_told_in_a_sentence(letters, path):
    letters.write([dead(0)])
    kept = path.rename(path.with_suffix(".kept"))
    path.symlink_to(path.name)
    with pytest.raises(Unavailable, match="Look at the disk"):
        letters.write([dead(1)])
    kept.replace(path)
    letters.write([dead(1)])
    assert offsets_in(path) == ([0, 1], 0)


class TruncatedUnderIts(CsvLetters):
    """By a rotation that copies and truncates: it asks for no lock."""

    def _sound_end(self, descriptor):
        end = super()._sound_end(descriptor)
        os.truncate(descriptor, 0)
        return end


def test_a_file_truncated_while_it_is_written_has_no_hole_and_its_first_line(letters, path):
    letters.write([dead(0), dead(1)])
    TruncatedUnderIts(path).write([dead(2)])
    assert offsets_in(path) == ([2], 0)
    letters.write([dead(3)])
    assert offsets_in(path) == ([2, 3], 0)


def test_a_folder_that_cannot_be_written_is_told_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file" / "dlq.csv", tmp_path):
        with pytest.raises(AccessDenied, match="cannot be opened for writing"):
            CsvLetters(place)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"no table at all", THE_MODS.encode() + b"\n"])
def test_a_file_that_is_something_else_is_left_as_it_is(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(Unusable, match="Move the file away"):
        CsvLetters(path).write([dead()])
    assert path.read_bytes() == content


def test_a_file_of_the_mod_from_before_the_encoding_column_is_read(tmp_path):
    path = tmp_path / "kafka_dlq.csv"
    path.write_text(
        f"{THE_MODS}\n"
        '2024-01-15T10:05:23.456,orders,0,1005,user125,"{""a"":1}",TimeoutError,'
        "API timeout after 30s,Traceback...,30123.4,2\n"
        "2024-01-15T10:06:45.789Z,orders,1,21"
    )
    ((letter,), unreadable) = read_letters(path)
    assert unreadable == 1
    assert letter.record == Record(b'{"a":1}', b"user125", [], "orders", 0, 1005)
    assert (letter.error_type, letter.processing_ms, letter.retry_count) == (
        *("TimeoutError", 30123.4, 2),
    )
    assert letter.failed_ms == FAILED_MS


def test_rows_that_were_changed_by_hand_are_counted_and_the_others_read(letters, path):
    letters.write([dead(0), dead(1, b"\xff"), dead(2)])
    path.write_bytes(path.read_bytes().replace(b'""base64""', b'""rot13""'))
    assert offsets_in(path) == ([0, 2], 1)


def test_what_is_no_dead_letter_file_is_told_and_an_empty_one_holds_none(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n")
    with pytest.raises(Unusable, match="is no dead-letter file"):
        read_letters(path)
    path.write_text("")
    assert read_letters(path) == ([], 0)


def test_a_reason_that_is_no_text_for_a_disk_is_written_all_the_same(letters, path):
    letter = dead(0, reason="half \ud800 a character")
    letters.write([letter])
    ((found,), _) = read_letters(path)
    assert found.reason == "half \\ud800 a character"


def test_a_letter_without_a_reason_is_no_reason_to_fail(letters, path):
    letter = dead(0)
    letters.write([DeadLetter(letter.record, replace(letter.envelope, failure=None))])
    ((found,), _) = read_letters(path)
    assert (found.error_type, found.reason) == ("unknown", "")


def test_the_message_of_an_error_stands_without_its_class_and_beside_its_time(letters, path):
    letter = dead(0, reason="TimeoutError: API timeout after 30s")
    letters.write([replace(letter, processing_ms=30_123.4)])
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["error_type"], row["error_message"]) == ("TimeoutError", "API timeout after 30s")
    assert row["processing_time_ms"] == "30123.4"
    ((found,), _) = read_letters(path)
    assert found.processing_ms == 30_123.4


def test_a_closed_file_may_be_closed_again(letters):
    letters.close()
    letters.close()


def test_only_its_user_may_read_whole_records(letters, path):
    letters.write([dead(0)])
    assert path.stat().st_mode & 0o077 == 0
