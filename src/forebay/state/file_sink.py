"""Rows as lines of JSON in a file, with their position in a small file beside it.

The small file says how long the rows are that count. It is replaced in one step after the rows are
durable, and what is longer than it says is cut off when the sink opens: so rows and position are
there together or not at all.
"""

import base64
import errno
import fcntl
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import orjson

from forebay.core.errors import (
    AccessDenied,
    Damaged,
    Full,
    OutcomeUnknown,
    RowsRefused,
    Unavailable,
    Unusable,
)
from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition
from forebay.state.positions import is_stored_already


@dataclass(frozen=True, slots=True)
class _Reach:
    """The bytes that count, and the positions they reach."""

    length: int = 0
    positions: Mapping[SourcePartition, Offset] = field(default_factory=dict)


class FileSink:
    """`rows.ndjson` with `rows.ndjson.position` beside it. One writer; belongs to one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._beside = self._path.with_name(f"{self._path.name}.position")
        self._descriptor: int | None = None
        self._reach: _Reach | None = None
        self._expected: dict[SourcePartition, Offset | None] = {}

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        _, reach = self._open()
        stored = {partition: reach.positions.get(partition) for partition in partitions}
        self._expected.update(stored)
        return stored

    def commit(
        self, rows: Sequence[Mapping[str, object]], next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        lines = b"".join(_line(row) for row in rows)
        descriptor, reach = self._open()
        if is_stored_already(reach.positions, self._expected, next_offsets):
            return
        self._check_nobody_else_wrote(descriptor, reach)
        self._reach = None
        self._append(descriptor, lines, reach.length)
        longer = _Reach(reach.length + len(lines), {**reach.positions, **next_offsets})
        self._replace_position(longer)
        self._reach = longer
        self._expected.update(next_offsets)

    def close(self) -> None:
        descriptor, self._descriptor, self._reach = self._descriptor, None, None
        if descriptor is not None:
            os.close(descriptor)

    def _open(self) -> tuple[int, _Reach]:
        """After a failure too, so that what it left half done is cut off."""
        if self._descriptor is None:
            self._descriptor = self._open_alone()
        if self._reach is None:
            self._reach = self._recover(self._descriptor)
        return self._descriptor, self._reach

    def _open_alone(self) -> int:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise AccessDenied(
                f"{self._path} cannot be opened for writing ({error.strerror}). Nothing was "
                f"stored. Give this user write rights on it, or choose another file."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise Unavailable(
                f"{self._path} is written by another process. Nothing was stored; it is tried "
                f"again. End that process, or choose another file."
            ) from error
        return descriptor

    def _recover(self, descriptor: int) -> _Reach:
        size = os.fstat(descriptor).st_size
        reach = self._read_position()
        if reach is None:
            return self._begin(size)
        if size < reach.length:
            raise Damaged(
                f"{self._path} has {size:,} bytes where {reach.length:,} were stored: it was cut "
                f"or replaced. Nothing was changed. Restore it, or move it and {self._beside.name} "
                f"away to write all rows again."
            )
        if size > reach.length:
            os.ftruncate(descriptor, reach.length)
        return reach

    def _begin(self, size: int) -> _Reach:
        if size:
            raise Unusable(
                f"{self._path} holds {size:,} bytes, and no {self._beside.name} says where they "
                f"came from. Nothing was changed, for rows could be doubled. Restore that file, or "
                f"move {self._path.name} away."
            )
        self._replace_position(_Reach())
        return _Reach()

    def _read_position(self) -> _Reach | None:
        try:
            told = orjson.loads(self._beside.read_bytes())
            positions = {
                SourcePartition(topic, partition, incarnation): offset
                for topic, partition, incarnation, offset in told["positions"]
            }
            return _Reach(int(told["length"]), positions)
        except FileNotFoundError:
            return None
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise Damaged(
                f"{self._beside} cannot be read ({error}). Nothing was changed. Restore it, or "
                f"move it and {self._path.name} away to write all rows again."
            ) from error

    def _check_nobody_else_wrote(self, descriptor: int, reach: _Reach) -> None:
        ours = os.fstat(descriptor)
        try:
            there = self._path.stat()
        except FileNotFoundError:
            there = None
        if there is None or there.st_ino != ours.st_ino or ours.st_size != reach.length:
            raise Damaged(
                f"{self._path} was moved, replaced or changed by another program while rows were "
                f"written to it. Nothing of this batch was stored. Stop that program, put the file "
                f"back as it was, then start again."
            )

    def _append(self, descriptor: int, lines: bytes, at: int) -> None:
        try:
            self._write(descriptor, lines, at)
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise Full(
                    f"The disk of {self._path} is full. Nothing of this batch was stored; it is "
                    f"tried again. Free space."
                ) from error
            raise Unavailable(
                f"The disk of {self._path} failed ({error}). Nothing of this batch was stored; it "
                f"is tried again. Look at the disk."
            ) from error

    def _write(self, descriptor: int, lines: bytes, at: int) -> None:
        written = 0
        while written < len(lines):
            written += os.pwrite(descriptor, lines[written:], at + written)
        os.fsync(descriptor)

    def _replace_position(self, reach: _Reach) -> None:
        positions = [[*partition, offset] for partition, offset in reach.positions.items()]
        text = orjson.dumps({"length": reach.length, "positions": positions})
        beginning = self._beside.with_name(f"{self._beside.name}.tmp")
        try:
            with beginning.open("wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beginning.replace(self._beside)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise OutcomeUnknown(
                f"The position of {self._path} may or may not have been stored ({error}), and its "
                f"last rows with it. It is looked up before anything more is written. Look at the "
                f"disk."
            ) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(row: Mapping[str, object]) -> bytes:
    options = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(dict(row), default=_spelt, option=options)
    except orjson.JSONEncodeError as error:
        raise RowsRefused(
            f"A row cannot be written as JSON ({error}). Nothing was stored. Make rows of text, "
            f"numbers, dates, bytes, lists and dicts."
        ) from error


def _spelt(value: object) -> object:
    match value:
        case bytes() | bytearray() | memoryview():
            return {"base64": base64.b64encode(value).decode()}
        case Decimal() | Path():
            return str(value)
        case _:
            raise TypeError
