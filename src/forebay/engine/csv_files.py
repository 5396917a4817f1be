"""CSV files that several write, rotate, compress and kill each other over."""

import csv
import errno
import fcntl
import gzip
import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

LINE_END = b"\r\n"
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_LOOK_AGAIN_SECONDS = 0.005
_CHUNK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"

IsRow: TypeAlias = Callable[[Sequence[str]], bool]


@contextmanager
def as_text(raw: io.BufferedReader) -> Iterator[IO[str]]:
    """Also what was compressed. Bytes that are no text are kept as surrogates."""
    is_compressed = raw.peek(2).startswith(_GZIP_MAGIC)
    plain = gzip.GzipFile(fileobj=raw) if is_compressed else raw
    with io.TextIOWrapper(plain, "utf-8-sig", "surrogateescape", newline="") as text:
        yield text


def cells(row: bytes) -> list[str]:
    """Of one row, as `raw_rows` gives it."""
    csv.field_size_limit(sys.maxsize)
    text = io.StringIO(row.decode("utf-8", "surrogateescape"), newline="")
    return next(csv.reader(text), [])


def raw_rows(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Each with its line end; the last one may be torn."""
    row: list[bytes] = []
    quotes = 0
    for line in lines:
        row.append(line)
        quotes += line.count(b'"')
        if quotes % 2 == 0:
            yield b"".join(row)
            row, quotes = [], 0
    if row:
        yield b"".join(row)


def mend_end(descriptor: int, size: int, is_row: IsRow) -> int:
    """Where the next row goes: what a killed writer left half done is taken off before."""
    end = _end_of_last_row(descriptor, size)
    if end < size and _is_whole_row(os.pread(descriptor, size - end, end), is_row):
        return size + os.pwrite(descriptor, LINE_END, size)
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def try_lock(descriptor: int, seconds: float) -> None:
    """Raises BlockingIOError where another holds it for longer."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_LOOK_AGAIN_SECONDS)


@contextmanager
def held_lock(descriptor: int, seconds: float) -> Iterator[None]:
    try_lock(descriptor, seconds)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def is_in_place(descriptor: int, path: Path) -> bool:
    """Whether the path still names this file: it is rotated by renaming."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (FileNotFoundError, NotADirectoryError):
        return False


@contextmanager
def locked(path: Path, flags: int, seconds: float) -> Iterator[int]:
    """The file that the path names, by its descriptor, and nobody else's meanwhile."""
    while True:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            try_lock(descriptor, seconds)
            if is_in_place(descriptor, path):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def append_all(descriptor: int, content: bytes, end: int) -> None:
    """All of it, durably, or none: what was there before ended at `end`."""
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError:
        cut_back(descriptor, end)
        raise


def cut_back(descriptor: int, end: int) -> None:
    """Takes off what is behind it. A file that was truncated meanwhile does not grow."""
    with suppress(OSError):
        if os.fstat(descriptor).st_size > end:
            os.ftruncate(descriptor, end)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_whole_row(line: bytes, is_row: IsRow) -> bool:
    """Its last column proves it: cut anywhere, that one is gone or makes no sense."""
    return line.count(b'"') % 2 == 0 and is_row(cells(line))


def _end_of_last_row(descriptor: int, size: int) -> int:
    """After the last line feed that no quote encloses."""
    end = at = quotes = 0
    while at < size:
        chunk = os.pread(descriptor, min(_CHUNK_BYTES, size - at), at)
        if not chunk:
            break
        parts = chunk.split(b'"')
        for index in range(len(parts) - 1, -1, -1):
            is_outside = (quotes + index) % 2 == 0
            if is_outside and (feed := parts[index].rfind(b"\n")) >= 0:
                end = at + len(b'"'.join(parts[:index])) + (index > 0) + feed + 1
                break
        quotes += len(parts) - 1
        at += len(chunk)
    return end
