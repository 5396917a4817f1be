"""Waking readers in other processes: a FIFO for each waiter, linked where it wants to hear.

The rule that loses no wake-up: silence the bell, then read the log, then wait. `wait` silences it
on its way out, so whatever rings after that ends the next wait at once.
"""

import os
import select
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import apsw

# A dead waiter's FIFO is swept after this long; a new one is open within microseconds.
ABANDONED_SECONDS = 60.0


def rope_of_topic(topic_id: int) -> str:
    return f"topic-{topic_id}"


def rope_of_group(group_id: int) -> str:
    return f"group-{group_id}"


class BellTower:
    """The ringing side."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ring(self, topics: Collection[int], groups: Collection[int]) -> None:
        for topic_id in topics:
            self._ring(rope_of_topic(topic_id))
        for group_id in groups:
            self._ring(rope_of_group(group_id))

    def _ring(self, rope: str) -> None:
        try:
            with os.scandir(self._folder / rope) as bells:
                waiters = [bell.path for bell in bells]
        except FileNotFoundError:
            return
        for waiter in waiters:
            _ring_one(waiter)

    def sweep(self, now: float) -> None:
        """Remove what processes that were killed left behind."""
        for bell in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):
                if now - bell.stat().st_mtime > ABANDONED_SECONDS:
                    _ring_one(str(bell))


def _ring_one(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # ENXIO: nobody reads it any more; ENOENT: taken down this moment
        with suppress(FileNotFoundError):
            Path(path).unlink()
        return
    try:
        os.write(descriptor, b"\0")
    except BlockingIOError:
        pass  # full of rings that nobody has heard yet: it will wake
    finally:
        os.close(descriptor)


class Bell:
    """The waiting side, one per consumer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = uuid4().hex
        self._ropes: set[str] = set()
        pool = folder / "all"
        pool.mkdir(exist_ok=True)
        self._path = pool / self._name
        os.mkfifo(self._path, 0o600)
        # Read and write, so that it never ends and never blocks to open.
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def listen(self, ropes: Collection[str]) -> None:
        """Hear exactly these."""
        for rope in self._ropes - set(ropes):
            self._link(rope).unlink(missing_ok=True)
        for rope in set(ropes) - self._ropes:
            (self._folder / rope).mkdir(exist_ok=True)
            os.link(self._path, self._link(rope))
        self._ropes = set(ropes)

    def wait(self, seconds: float) -> None:
        """Until rung or the time is over."""
        if select.select([self._descriptor], [], [], max(0.0, seconds))[0]:
            os.read(self._descriptor, 4096)

    def ring(self) -> None:
        """From a signal handler: end the wait in progress."""
        with suppress(BlockingIOError):
            os.write(self._descriptor, b"\0")

    def close(self) -> None:
        self.listen(())
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def _link(self, rope: str) -> Path:
        return self._folder / rope / self._name


class PollingBell:
    """Where FIFOs cannot be made: look whether the file changed, more rarely while it is quiet."""

    SHORTEST_SECONDS = 0.001
    LONGEST_SECONDS = 0.020

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._version = self._look()
        self._rung = False

    def listen(self, ropes: Collection[str]) -> None:
        pass

    def wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        pause = self.SHORTEST_SECONDS
        version = self._look()
        while not self._rung and version == self._version:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            time.sleep(min(pause, remaining))
            pause = min(pause * 2, self.LONGEST_SECONDS)
            version = self._look()
        self._rung, self._version = False, version

    def ring(self) -> None:
        self._rung = True

    def close(self) -> None:
        pass

    def _look(self) -> int:
        version = self._connection.execute("PRAGMA data_version").get
        assert isinstance(version, int)  # noqa: S101 - the pragma's only type
        return version


def hang_bell(folder: Path, connection: apsw.Connection) -> Bell | PollingBell:
    try:
        return Bell(folder)
    except (OSError, AttributeError):
        return PollingBell(connection)
