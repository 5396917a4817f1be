"""Takes rows out of a dead-letter CSV, or puts others in their place, while it is written.

A row is known by its bytes. Under the file's lock all others, whoever wrote them meanwhile, are
carried over as they are; the new file then takes the place of the old one in one step.
"""

import os
import stat
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import IO

from forebay.core.errors import ForebayError, Full, Unavailable, Unusable
from forebay.engine.csv_files import (
    LINE_END,
    NO_ROOM,
    append_all,
    cells,
    is_in_place,
    locked,
    mend_end,
    raw_rows,
    sync_folder,
)
from forebay.engine.letter_rows import COLUMNS, letter_in

LOCK_SECONDS = 30.0
_ALONE_SECONDS = 0.2
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`head` is the first line. `rows` are what follows it, word for word."""

    head: bytes
    columns: tuple[str, ...]
    rows: Sequence[bytes]


class DlqFile:
    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Two that take rows out of one file would both handle them."""
        place = self.path.with_name(f".{self.path.name}.reprocessing")
        try:
            with locked(place, os.O_RDWR | os.O_CREAT, _ALONE_SECONDS):
                try:
                    yield
                finally:
                    place.unlink(missing_ok=True)
        except BlockingIOError as error:
            raise Unavailable(
                f"Another process is reprocessing {self.path}. Nothing was done; wait for its end."
            ) from error

    def read(self) -> Snapshot:
        with self._opened() as file:
            rows = raw_rows(file)
            head = next(rows, b"")
            columns = self._columns(head) if head else COLUMNS
            return Snapshot(head, columns, [row for row in rows if row.strip()])

    def replace(self, settled: Mapping[bytes, Sequence[bytes]]) -> int:
        """Nothing in its place takes a row out. Says how many rows were not there any more."""
        left = {row: deque(others) for row, others in settled.items()}
        draft = self.path.with_name(f".{self.path.name}.rewritten")
        with self._opened() as file:
            try:
                with draft.open("wb") as target:
                    _like(file, target)
                    for row in raw_rows(file):
                        others = left.get(row)
                        target.write(others.popleft() if others else row)
                    target.flush()
                    os.fsync(target.fileno())
                self._take_its_place(file, draft)
                sync_folder(self.path.parent)
            except OSError as error:
                draft.unlink(missing_ok=True)
                raise _trouble(self.path, error) from error
        return sum(map(len, left.values()))

    def _take_its_place(self, file: BufferedReader, draft: Path) -> None:
        if not is_in_place(file.fileno(), self.path):
            draft.unlink()
            raise Unavailable(
                f"{self.path} was rotated meanwhile. It is as it was; run it again on the rotated "
                f"file."
            )
        draft.rename(self.path)

    @contextmanager
    def _opened(self) -> Iterator[BufferedReader]:
        try:
            with (
                locked(self.path, os.O_RDWR, LOCK_SECONDS) as descriptor,
                open(descriptor, "rb", closefd=False) as file,
            ):
                yield file
        except BlockingIOError as error:
            raise Unavailable(
                f"{self.path} is locked by another process. What was not rewritten yet stays as it "
                f"is. See what holds it: fuser {self.path.name}."
            ) from error

    def _columns(self, head: bytes) -> tuple[str, ...]:
        columns = tuple(cells(head.removeprefix(BOM_UTF8)))
        if columns not in {COLUMNS, COLUMNS[:-1]}:
            raise Unusable(
                f"{self.path} is no dead-letter file: its first line is not "
                f"{','.join(COLUMNS[:-1])}[,encoding]. Nothing was done. Name another file; unpack "
                f"one that is compressed."
            )
        return columns


def add_rows(path: Path, head: bytes, rows: Sequence[bytes]) -> None:
    """Durable on return. A row that is there already is not written again."""
    try:
        with locked(path, _APPENDING, LOCK_SECONDS) as descriptor:
            present = _present(descriptor, path, head)
            new = [ended for row in rows if (ended := _ended(row)) not in present]
            size = os.fstat(descriptor).st_size
            columns = cells(head.removeprefix(BOM_UTF8))
            end = mend_end(descriptor, size, lambda row: letter_in(columns, row) is not None)
            content = b"".join(new)
            append_all(descriptor, content if end else _ended(head) + content, end)
            sync_folder(path.parent)
    except OSError as error:
        raise _trouble(path, error) from error


def _present(descriptor: int, path: Path, head: bytes) -> set[bytes]:
    with open(descriptor, "rb", closefd=False) as file:
        rows = raw_rows(file)
        first = next(rows, b"")
        if first and not _ended(head).startswith(_ended(first).removesuffix(LINE_END)):
            raise Unusable(
                f"{path} has other columns than the dead-letter file. No row was moved there. Name "
                f"another file for permanent failures."
            )
        return {_ended(row) for row in rows}


def _ended(row: bytes) -> bytes:
    return row.rstrip(b"\r\n") + LINE_END


def _like(old: BufferedReader, new: IO[bytes]) -> None:
    """Whoever wrote the old one must be able to write the new one."""
    facts = os.fstat(old.fileno())
    os.fchmod(new.fileno(), stat.S_IMODE(facts.st_mode))
    if (facts.st_uid, facts.st_gid) != (os.geteuid(), os.getegid()):
        os.fchown(new.fileno(), facts.st_uid, facts.st_gid)


def _trouble(path: Path, error: OSError) -> ForebayError:
    if error.errno in NO_ROOM:
        return Full(
            f"There is no room to write {path} ({error.strerror}). The dead letters are as they "
            f"were. Free space, then run it again."
        )
    return Unusable(
        f"{path} cannot be written ({error.strerror}). The dead letters are as they were. Give "
        f"this user write rights on the file and its folder, then run it again."
    )
