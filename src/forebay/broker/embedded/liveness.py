import fcntl
import os
import struct
import threading
from pathlib import Path

_BEAT = struct.Struct("<d")


class SignOfLife:
    """A member's file: locked while its process lives, and telling when it last beat.

    The kernel drops the lock of a killed process at once; a frozen one is known by its old beat.
    """

    def __init__(self, folder: Path, member_id: str, now: float) -> None:
        self.path = folder / member_id
        draft = folder / f".{member_id}"
        self._writing = threading.Lock()
        self._is_over = False
        self._descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self.beat(now)
        # Named only once locked: a peer that finds it unlocked may take it for dead.
        draft.rename(self.path)

    def beat(self, now: float) -> None:
        """Nothing after the end: the descriptor's number may be another file's by then."""
        with self._writing:
            if not self._is_over:
                os.pwrite(self._descriptor, _BEAT.pack(now), 0)

    def end(self) -> None:
        self.path.unlink(missing_ok=True)
        with self._writing:
            self._is_over = True
            os.close(self._descriptor)

    def forget(self) -> None:
        """In a forked child: drop the copy of the descriptor, which shares the parent's lock."""
        os.close(self._descriptor)


def is_dead(path: Path, session_seconds: float, now: float) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        (beat,) = _BEAT.unpack(os.pread(descriptor, _BEAT.size, 0))
        return bool(now - beat > session_seconds)
    else:
        return True
    finally:
        os.close(descriptor)
