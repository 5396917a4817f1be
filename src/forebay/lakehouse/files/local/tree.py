"""Steps below one folder, each taken from the descriptor of the step before.

So no symbolic link below the folder is ever followed, not even one that is planted meanwhile.
"""

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from forebay.lakehouse.files.source import opened_file

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""What the steps raise where there is no file, or something else has its name."""


class Tree:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open_folder(self, parts: Sequence[str], *, make: bool = False) -> int:
        """A descriptor of its own, so that a lock on it holds off others of this process too."""
        descriptor = os.open(".", _FOLDER, dir_fd=self.descriptor)
        for part in parts:
            try:
                below = _step(descriptor, part, make=make)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    @contextmanager
    def folder(self, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
        descriptor = self.open_folder(parts, make=make)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def file(self, parts: Sequence[str]) -> Iterator[int]:
        with self.folder(parts[:-1]) as folder, opened_file(parts[-1], folder) as file:
            yield file

    def close(self) -> None:
        os.close(self.descriptor)


@contextmanager
def new_file(leaf: str, folder: int) -> Iterator[int]:
    descriptor = os.open(leaf, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _step(folder: int, part: str, *, make: bool) -> int:
    try:
        return _open_folder(folder, part)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=folder)
    return _open_folder(folder, part)


def _open_folder(folder: int, part: str) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, "it is a symbolic link") from error
        raise
