"""The folder between download and upload. Its files are named by attempt and may all be lost."""

import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread

from forebay.core.errors import AccessDenied, Rejected

PART_SECONDS = 86_400.0
OLD_SECONDS = 86_400.0
LOOK_EVERY_SECONDS = 10.0
FREE_BYTES_MIN = 512 * 2**20
FREE_SHARE_MIN = 0.05
_FOLDERS = 256
_NAME = re.compile(r"[0-9a-f]{32}")


class OutsideCache(Rejected):
    """A path that a record names, and that no cache of ours made."""


class Cache:
    """Several processes use one folder. A file in it needs no sync: what is missing is fetched
    again. At its bound it waits for uploads; nothing is removed to make room.

    Its folders are made when it is first used, for not every worker uses one; `opened` is told.
    """

    def __init__(
        self, folder: Path, bytes_max: int, opened: Callable[["Cache"], None] | None = None
    ) -> None:
        self.folder = folder
        self._opened = opened
        self._opening = Lock()
        self._is_open = False
        self._bytes_max = bytes_max
        self._looked_at = float("-inf")
        self._reason: str | None = None
        self._looking = Lock()
        self._process = uuid.uuid4().hex[:20]
        self._attempts = count()

    def place(self) -> Path:
        """A name that no attempt had or will have: this process's, and a number."""
        self._open()
        number = next(self._attempts)
        return self.folder / f"{number % _FOLDERS:02x}" / f"{number:012x}{self._process}"

    def file(self, written: str) -> Path:
        """The cached file that a record names, wherever the cache was when it was written.

        A record may name any path, so only the file's own name is taken from it.
        """
        name = Path(written).name
        if not _NAME.fullmatch(name):
            raise OutsideCache(
                "The record names a cached file that no download of this pipeline made. It is not "
                "read. Look who else writes to the stage's topic."
            )
        return self.folder / f"{int(name[:12], 16) % _FOLDERS:02x}" / name

    def drop(self, written: str) -> None:
        self.file(written).unlink(missing_ok=True)

    def why_it_waits(self) -> str | None:
        """A sentence while there is no room for more downloads.

        Found out beside: who asks, asks between two polls, and a listing may take long.
        """
        self._open()
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_SECONDS:
            self._looked_at = now
            Thread(target=self._look_again, name="forebay-cache", daemon=True).start()
        return self._reason

    def _open(self) -> None:
        if self._is_open:
            return
        with self._opening:
            if not self._is_open:
                self._make_folders()
                self._is_open = True
                if self._opened is not None:
                    self._opened(self)

    def _make_folders(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            for number in range(_FOLDERS):
                (self.folder / f"{number:02x}").mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise AccessDenied(
                f"The folder of the cache {self.folder} cannot be made ({error.strerror}). Nothing "
                f"is downloaded or uploaded, and nothing is lost. Let this user write there, or "
                f"name another folder as storage.cache_dir."
            ) from error

    def _look_again(self) -> None:
        with self._looking:
            self._reason = self.look()

    def sweep(self, now: float, keep_seconds: float) -> int:
        """Removes unfinished files after a day, others after `keep_seconds`; says how many."""
        self._open()
        removed = 0
        for path, told in self._entries():
            limit = PART_SECONDS if path.suffix == ".part" else keep_seconds
            if now - told.st_mtime > limit:
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def look(self) -> str | None:
        """As it is now. Blocking; lists all that is there."""
        self._open()
        disk = shutil.disk_usage(self.folder)
        free = disk.free
        if free < min(FREE_BYTES_MIN, FREE_SHARE_MIN * disk.total):
            return (
                f"The disk of the cache {self.folder} has {free // 2**20} MiB left. Downloads wait "
                f"until uploads make room; free space there if they do not."
            )
        found = [told for _, told in self._entries()]
        held = sum(told.st_size for told in found)
        if held < self._bytes_max:
            return None
        since = time.time() - OLD_SECONDS
        old = sum(told.st_size for told in found if told.st_mtime < since)
        return (
            f"The cache {self.folder} holds {held // 2**20} MiB, its bound. Downloads wait until "
            f"uploads make room; raise storage.cache_max_bytes if they should not.{_left(old)}"
        )

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """A file that goes while they are listed is no matter."""
        for number in range(_FOLDERS):
            with os.scandir(self.folder / f"{number:02x}") as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)


def _left(old: int) -> str:
    """What uploads will hardly take any more."""
    if not old:
        return ""
    return (
        f" {old:,} bytes of it are older than a day: crashed downloads leave such files. If the "
        f"upload stage has nothing left to do, delete these."
    )
