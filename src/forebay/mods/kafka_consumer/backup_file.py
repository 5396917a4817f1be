"""The backup's CSV file: one writer at a time, rotated from outside while it is written.

It is locked for as long as it is open, so a second instance waits for its turn. Rows are appended
by the operating system's own means: a file that was truncated under its writer has no hole.
"""

import os
from pathlib import Path

from forebay.core.errors import AccessDenied, ForebayError, Full, Unavailable, Unusable
from forebay.engine.csv_files import (
    NO_ROOM,
    cut_back,
    is_in_place,
    mend_end,
    raw_rows,
    try_lock,
    write_all,
)
from forebay.mods.kafka_consumer.backup_rows import COLUMNS, HEAD, is_ours, is_row

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class BackupFile:
    """Belongs to one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._descriptor: int | None = None

    def append(self, rows: bytes) -> None:
        """All or none. With the operating system on return, not yet on the disk."""
        try:
            descriptor = self._in_place()
            end = os.fstat(descriptor).st_size
            _append(descriptor, rows if end else HEAD + rows, end)
        except OSError as error:
            raise _trouble(self._path, error) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _in_place(self) -> int:
        """The file that the path names now: it may have been renamed."""
        while self._descriptor is None or not is_in_place(self._descriptor, self._path):
            self.close()
            self._descriptor = self._open()
        return self._descriptor

    def _open(self) -> int:
        try:
            descriptor = os.open(self._path, _FLAGS, 0o600)
        except OSError as error:
            raise AccessDenied(
                f"{self._path} cannot be opened for writing ({error.strerror}). Give this user "
                f"write rights on it, or set another backup_path."
            ) from error
        try:
            self._make_ours(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _make_ours(self, descriptor: int) -> None:
        try:
            try_lock(descriptor, 0)
            size = os.fstat(descriptor).st_size
            if size:
                self._check_columns(descriptor)
                mend_end(descriptor, size, is_row)
        except BlockingIOError as error:
            raise Unavailable(
                f"Another instance writes to {self._path}; this one takes its place when it ends. "
                f"Set a backup_path of its own for each instance."
            ) from error
        except OSError as error:
            raise _trouble(self._path, error) from error

    def _check_columns(self, descriptor: int) -> None:
        with open(descriptor, "rb", closefd=False) as file:
            first_row = next(raw_rows(file))
        if not is_ours(first_row):
            raise Unusable(
                f"{self._path} has other columns than a backup ({', '.join(COLUMNS)}). Nothing was "
                f"written to it. Move the file away, or set another backup_path."
            )


def _append(descriptor: int, content: bytes, end: int) -> None:
    try:
        write_all(descriptor, content)
    except OSError:
        cut_back(descriptor, end)
        raise


def _trouble(path: Path, error: OSError) -> ForebayError:
    if error.errno in NO_ROOM:
        return Full(f"There is no room for rows in {path} ({error.strerror}). Free space.")
    return Unavailable(f"Rows cannot be written to {path} ({error.strerror}). Look at the disk.")
