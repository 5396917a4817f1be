"""A crash between any two steps of a commit neither loses nor doubles a row."""

import errno
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import orjson
import pytest

from forebay.core.errors import (
    AccessDenied,
    Damaged,
    Full,
    OutcomeUnknown,
    RowsRefused,
    Unavailable,
    Unusable,
)
from forebay.core.sinks import SourcePartition
from forebay.state.file_sink import FileSink

HERE = SourcePartition("orders", 0, "topic-1")
A, B = {"id": "a"}, {"id": "b"}
LINE_A, LINE_B = b'{"id":"a"}\n', b'{"id":"b"}\n'


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "out" / "rows.ndjson"


@pytest.fixture
def beside(path) -> Path:
    return path.with_name("rows.ndjson.position")


@pytest.fixture
def stored(path) -> Path:
    """One row, committed and closed."""
    sink = FileSink(path)
    sink.commit([A], {HERE: 1})
    sink.close()
    return path


def go_on(path: Path) -> bytes:
    """The next process: it asks where it stands and stores what is not stored."""
    sink = FileSink(path)
    at = sink.position([HERE])[HERE] or 0
    sink.commit([A, B][at:], {HERE: 2})
    sink.close()
    return path.read_bytes()


def position(length: int, *, next_offset: int) -> bytes:
    return orjson.dumps({"length": length, "positions": [[*HERE, next_offset]]})


def test_a_crash_before_anything_was_written(path):
    path.parent.mkdir()
    path.write_bytes(b"")
    assert go_on(path) == LINE_A + LINE_B


def test_a_crash_after_the_first_rows_and_before_their_position(path):
    sink = FileSink(path)
    sink.position([HERE])
    sink.close()
    path.write_bytes(LINE_A)
    assert go_on(path) == LINE_A + LINE_B


@pytest.mark.parametrize("written", range(len(LINE_B) + 1))
def test_a_crash_at_any_byte_of_the_next_row(stored, written):
    with stored.open("ab") as file:
        file.write(LINE_B[:written])
    assert go_on(stored) == LINE_A + LINE_B


@pytest.mark.parametrize("written", [0, 10, len(position(22, next_offset=2))])
def test_a_crash_while_the_next_position_is_written_beside_the_last(stored, beside, written):
    with stored.open("ab") as file:
        file.write(LINE_B)
    half = position(22, next_offset=2)[:written]
    beside.with_name("rows.ndjson.position.tmp").write_bytes(half)
    assert go_on(stored) == LINE_A + LINE_B


def test_a_crash_after_the_position_took_its_place(stored, beside):
    with stored.open("ab") as file:
        file.write(LINE_B)
    beside.write_bytes(position(22, next_offset=2))
    assert go_on(stored) == LINE_A + LINE_B


def test_the_position_on_disk_is_the_one_these_tests_construct(stored, beside):
    assert beside.read_bytes() == position(11, next_offset=1)


def test_a_row_is_a_line_of_json(path):
    sink = FileSink(path)
    row = {
        "at": datetime(2024, 5, 6, tzinfo=UTC),
        "raw": b"\xff",
        "price": Decimal("1.10"),
        "lines": "a\nb",
        "nothing": None,
    }
    sink.commit([row], {HERE: 1})
    sink.close()
    (line,) = path.read_bytes().splitlines()
    assert orjson.loads(line) == {
        "at": "2024-05-06T00:00:00+00:00",
        "raw": {"base64": "/w=="},
        "price": "1.10",
        "lines": "a\nb",
        "nothing": None,
    }


@pytest.mark.parametrize("value", ["\ud800", {1, 2}, object(), 2**70])
def test_what_json_cannot_hold_is_refused(path, value):
    sink = FileSink(path)
    with pytest.raises(RowsRefused, match="cannot be written as JSON"):
        sink.commit([A, {"id": value}], {HERE: 2})
    sink.commit([B], {HERE: 2})
    sink.close()
    assert path.read_bytes() == LINE_B


def test_a_file_of_somebody_else_is_not_overwritten(path):
    path.parent.mkdir()
    path.write_bytes(b"precious\n")
    sink = FileSink(path)
    with pytest.raises(Unusable, match="holds 9 bytes"):
        sink.position([HERE])
    sink.close()
    assert path.read_bytes() == b"precious\n"


def test_rows_whose_position_file_is_gone_are_not_written_a_second_time(stored, beside):
    beside.unlink()
    with pytest.raises(Unusable, match="rows could be doubled"):
        go_on(stored)
    assert stored.read_bytes() == LINE_A


def test_a_file_shorter_than_what_was_stored_is_told(stored):
    stored.write_bytes(LINE_A[:5])
    with pytest.raises(Damaged, match="5 bytes where 11 were stored"):
        go_on(stored)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"length": 11}', b'{"positions": [[1]]}'])
def test_a_position_that_cannot_be_read_is_told_not_guessed(stored, beside, content):
    beside.write_bytes(content)
    with pytest.raises(Damaged, match=r"position cannot be read.*Restore it"):
        go_on(stored)
    assert stored.read_bytes() == LINE_A


def test_a_second_writer_waits_until_the_first_has_gone(stored):
    first, second = FileSink(stored), FileSink(stored)
    first.position([HERE])
    with pytest.raises(Unavailable, match="written by another process"):
        second.position([HERE])
    first.close()
    assert second.position([HERE]) == {HERE: 1}
    second.close()


@pytest.mark.parametrize("change", ["moved", "replaced", "appended to"])
def test_a_file_changed_under_the_sink_is_not_written_to(stored, change):
    sink = FileSink(stored)
    sink.position([HERE])
    if change == "appended to":
        with stored.open("ab") as file:
            file.write(b"by hand\n")
    else:
        stored.rename(stored.with_name("old.ndjson"))
    if change == "replaced":
        stored.write_bytes(LINE_A)
    with pytest.raises(Damaged, match="moved, replaced or changed"):
        sink.commit([B], {HERE: 2})
    sink.close()


def test_a_disk_that_is_full_for_a_while_loses_and_doubles_nothing(stored):
    sink = FullDisk(stored)
    sink.position([HERE])
    with pytest.raises(Full, match="Free space"):
        sink.commit([B], {HERE: 2})
    assert sink.position([HERE]) == {HERE: 1}
    sink.is_full = False
    sink.commit([B], {HERE: 2})
    sink.close()
    assert stored.read_bytes() == LINE_A + LINE_B


def test_a_position_that_cannot_be_written_for_a_while_loses_and_doubles_nothing(stored, beside):
    in_the_way = beside.with_name("rows.ndjson.position.tmp")
    in_the_way.mkdir()
    sink = FileSink(stored)
    sink.position([HERE])
    with pytest.raises(OutcomeUnknown, match="may or may not have been stored"):
        sink.commit([B], {HERE: 2})
    in_the_way.rmdir()
    assert sink.position([HERE]) == {HERE: 1}
    sink.commit([B], {HERE: 2})
    sink.close()
    assert stored.read_bytes() == LINE_A + LINE_B


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(AccessDenied, match="choose another file"):
        FileSink(tmp_path / "out" / "rows.ndjson").position([HERE])


class FullDisk(FileSink):
    """Half of the rows are written, then there is no room."""

    is_full = True

    def _write(self, descriptor: int, lines: bytes, at: int) -> None:
        if not self.is_full:
            return super()._write(descriptor, lines, at)
        os.pwrite(descriptor, lines[: len(lines) // 2], at)
        raise OSError(errno.ENOSPC, "No space left on device")
