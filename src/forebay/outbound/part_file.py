"""The file of a download while it is written: visible under its own name only when it is whole."""

import errno
import fcntl
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from forebay.core.errors import Full, Unavailable
from forebay.outbound.errors import DownloadFailed
from forebay.outbound.file_types import HEAD_BYTES, TAIL_BYTES

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class PartFile:
    """`<into>.part`, locked as long as it is written. Gone with the block unless published."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._part = f"{into}.part"
        self._file = -1
        self._hash = hashlib.sha256()
        self.bytes = 0
        self.head = b""
        self.tail = b""

    def __enter__(self) -> Self:
        try:
            self._file = _created(self._part)
        except OSError as problem:
            raise self._told(problem) from problem
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._file >= 0:
            with suppress(FileNotFoundError):
                os.unlink(self._part)  # noqa: PTH108  a Path for each download costs more
            self._close()

    def write(self, chunk: bytes) -> None:
        try:
            _write_all(self._file, chunk)
        except OSError as problem:
            raise self._told(problem) from problem
        self._hash.update(chunk)
        self.bytes += len(chunk)
        if len(self.head) < HEAD_BYTES:
            self.head += chunk[: HEAD_BYTES - len(self.head)]
        self.tail = chunk[-TAIL_BYTES:] if len(chunk) >= TAIL_BYTES else self._longer_tail(chunk)

    def publish(self) -> str:
        """Its SHA-256. Not synced: a cached file that is missing or torn is fetched again."""
        try:
            os.rename(self._part, self._into)  # noqa: PTH104  the same
        except OSError as problem:
            raise self._told(problem) from problem
        self._close()
        return self._hash.hexdigest()

    def _longer_tail(self, chunk: bytes) -> bytes:
        return (self.tail + chunk)[-TAIL_BYTES:]

    def _close(self) -> None:
        os.close(self._file)
        self._file = -1

    def _told(self, problem: OSError) -> Exception:
        place, reason = str(self._into.parent), problem.strerror or type(problem).__name__
        if isinstance(problem, BlockingIOError):
            return DownloadFailed(
                "target_busy",
                "Another download writes the same file at this moment. This one is tried again.",
            )
        if problem.errno in _NO_ROOM:
            return Full(
                f"The folder '{place}' is full ({reason}). The download is tried again; free "
                f"space there."
            )
        return Unavailable(
            f"The folder '{place}' takes no file ({reason}). The download is tried again; look at "
            f"the folder and its permissions."
        )


def _created(part: str) -> int:
    """What an earlier process left behind makes room; what another one writes does not."""
    try:
        return _locked(os.open(part, _CREATE, 0o600))
    except FileExistsError:
        _remove_if_left_behind(part)
    return _locked(os.open(part, _CREATE, 0o600))


def _remove_if_left_behind(part: str) -> None:
    """Raises BlockingIOError where it is being written, OSError where it is a planted link."""
    left = _locked(os.open(part, _LOOK))
    try:
        os.unlink(part)  # noqa: PTH108  the same
    finally:
        os.close(left)


def _locked(file: int) -> int:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(file)
        raise
    return file


def _write_all(file: int, chunk: bytes) -> None:
    written = os.write(file, chunk)
    while written < len(chunk):
        chunk = chunk[written:]
        written = os.write(file, chunk)
