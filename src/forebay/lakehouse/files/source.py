"""The file that is to be stored, opened with care and compared with what was promised of it."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forebay.lakehouse.files.content import Content
from forebay.lakehouse.files.faults import told_plainly, translate
from forebay.lakehouse.files.port import SourceDiffers, SourceGone

# Without O_NONBLOCK a pipe in the file's place would wait for a writer for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A symbolic link that is not followed, and a socket.
_NO_FILE = {errno.ELOOP, errno.ENXIO}


@dataclass(frozen=True, slots=True)
class Original:
    """The source, open and compared with what was promised of it."""

    path: Path
    descriptor: int
    content: Content


@contextmanager
def opened_source(source: Path) -> Iterator[int]:
    """Raises SourceGone, and SourceDiffers for what is no file."""
    descriptor = _open_source(source)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def compared_source(source: Path, content: Content) -> Iterator[Original]:
    with opened_source(source) as descriptor:
        with told_plainly(source.parent):
            is_as_promised = content.is_in(descriptor)
        if not is_as_promised:
            raise not_as_promised(source, content)
        yield Original(source, descriptor, content)


def not_as_promised(source: Path, content: Content) -> SourceDiffers:
    return SourceDiffers(
        f"{source} is not what was promised: {content.size} bytes with the SHA-256 "
        f"{content.sha256[:12]}…. Nothing was stored. It must be fetched again."
    )


@contextmanager
def opened_file(leaf: str | Path, folder: int | None = None) -> Iterator[int]:
    descriptor = open_file(leaf, folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(leaf: str | Path, folder: int | None = None) -> int:
    """Raises IsADirectoryError for everything that is no regular file."""
    descriptor = _open_whatever_it_is(leaf, folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IsADirectoryError(errno.EISDIR, "it is no regular file")


def _open_whatever_it_is(leaf: str | Path, folder: int | None) -> int:
    try:
        return os.open(leaf, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise IsADirectoryError(errno.EISDIR, "it is no regular file") from error
        raise


def _open_source(source: Path) -> int:
    try:
        return open_file(source)
    except FileNotFoundError as error:
        raise SourceGone(
            f"{source} is not there any more. Nothing was stored. If its content is not at its "
            f"destination already, it must be fetched again."
        ) from error
    except IsADirectoryError as error:
        raise SourceDiffers(
            f"{source} is no file, but a folder, a symbolic link or a device. Nothing was stored. "
            f"Look at who made it."
        ) from error
    except OSError as error:
        raise translate(error, source.parent) from error
