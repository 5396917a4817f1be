"""Dead letters in a durable CSV file, for stages that may create no topic, and for the mod.

Whoever changes the file holds a lock on it meanwhile: other writers, and the tool that takes rows
out again. It is rotated by renaming: once it has the lock, a writer looks whether the file is still
the one that its path names.
"""

import csv
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from forebay.core.errors import AccessDenied, ForebayError, Full, Unavailable, Unusable
from forebay.engine.csv_files import (
    LINE_END,
    NO_ROOM,
    append_all,
    as_text,
    held_lock,
    is_in_place,
    mend_end,
    sync_folder,
)
from forebay.engine.csv_values import ENCODING, as_lines
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.letter_rows import COLUMNS, FiledLetter, letter_in, row_of

LOCK_SECONDS = 0.5

_HEAD = as_lines([COLUMNS])
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Locked(Unavailable):
    """By somebody who lets go of it soon."""


class CsvLetters:
    """A LetterFile. Any number of processes may write to one file, each in its turn."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._descriptor: int | None = None
        self._left_behind = (0, 0)
        self._open()

    def write(self, letters: Sequence[DeadLetter]) -> None:
        if not letters:
            return
        lines = as_lines(row_of(letter) for letter in letters)
        try:
            with self._locked() as descriptor:
                self._append(descriptor, lines)
                self._left_behind = _size_and_time(descriptor)
        except BlockingIOError as error:
            raise Locked(
                f"{self._path} is locked by another process. Its dead letters were not written. "
                f"See what holds it: fuser {self._path.name}."
            ) from error
        except OSError as error:
            raise _trouble(self._path, error) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Not waited for longer than a moment: who waits here polls no broker."""
        while True:
            descriptor = self._open()
            with held_lock(descriptor, LOCK_SECONDS):
                if is_in_place(descriptor, self._path):
                    yield descriptor
                    return
            self.close()

    def _open(self) -> int:
        if self._descriptor is None:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self._path, _FLAGS, 0o600)
            except OSError as error:
                raise AccessDenied(
                    f"The dead-letter file {self._path} cannot be opened for writing "
                    f"({error.strerror}). Nothing was stored. Give this user write rights on it, "
                    f"or choose another file."
                ) from error
        return self._descriptor

    def _sound_end(self, descriptor: int) -> int:
        """Where the next row goes: what a killed writer left half done is taken off before."""
        size, changed_at = _size_and_time(descriptor)
        if size == 0 or (size, changed_at) == self._left_behind:
            return size
        self._check_columns(descriptor)
        return mend_end(descriptor, size, lambda row: letter_in(COLUMNS, row) is not None)

    def _check_columns(self, descriptor: int) -> None:
        head = _HEAD.removesuffix(LINE_END)
        first = os.pread(descriptor, len(head), 0)
        if not head.startswith(first):
            raise Unusable(
                f"{self._path} has other columns than a dead-letter file ({', '.join(COLUMNS)}). "
                f"Nothing was written. Move the file away, or choose another one."
            )

    def _append(self, descriptor: int, lines: bytes) -> None:
        """All of it or none."""
        end = self._sound_end(descriptor)
        content = lines if end else _HEAD + lines
        append_all(descriptor, content, end)
        if os.fstat(descriptor).st_size < end + len(content):  # truncated from outside meanwhile
            os.ftruncate(descriptor, 0)
            append_all(descriptor, _HEAD + lines, 0)
        if end == 0:
            sync_folder(self._path.parent)


class LettersRead(NamedTuple):
    """`unreadable` rows were cut or changed; one at the end may still be on its way."""

    letters: list[FiledLetter]
    unreadable: int


def read_letters(path: Path) -> LettersRead:
    """Also from `.gz`, and from files that the mod wrote before there was an `encoding`."""
    csv.field_size_limit(sys.maxsize)
    letters: list[FiledLetter] = []
    unreadable = 0
    with path.open("rb") as raw, as_text(raw) as file:
        rows = csv.reader(file)
        columns = next(rows, list(COLUMNS))
        if tuple(columns) not in {COLUMNS, COLUMNS[:-1]}:
            raise Unusable(
                f"{path} is no dead-letter file: its first line is not "
                f"{','.join(COLUMNS[:-1])}[,{ENCODING}]. Nothing was read. Name another file."
            )
        try:
            for row in rows:
                if (letter := letter_in(columns, row)) is not None:
                    letters.append(letter)
                elif row:
                    unreadable += 1
        except EOFError:
            unreadable += 1
    return LettersRead(letters, unreadable)


def _size_and_time(descriptor: int) -> tuple[int, int]:
    facts = os.fstat(descriptor)
    return facts.st_size, facts.st_mtime_ns


def _trouble(path: Path, error: OSError) -> ForebayError:
    if error.errno in NO_ROOM:
        return Full(
            f"There is no room for dead letters in {path} ({error.strerror}). None was written. "
            f"Free space."
        )
    return Unavailable(
        f"Dead letters cannot be written to {path} ({error.strerror}). Look at the disk."
    )
