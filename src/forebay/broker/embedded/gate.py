import fcntl
import os
from pathlib import Path


class Gate:
    """The right to write, one process at a time and in turn.

    SQLite's own busy handler sleeps and retries: with four writers the slowest got a fifth of the
    fastest and waited for seconds. flock queues them.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        os.pwrite(self._descriptor, b"%-10d" % os.getpid(), 0)

    def __exit__(self, *exc: object) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def last_holder(self) -> str:
        """The process that entered last, for messages about a gate that does not open."""
        return os.pread(self._descriptor, 10, 0).decode().strip() or "unknown"

    def close(self) -> None:
        os.close(self._descriptor)
