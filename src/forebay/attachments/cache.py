"""The folder between download and upload. Its files are named by attempt and may all be lost."""

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from forebay.core.errors import Rejected

PART_SECONDS = 86_400.0
LOOK_EVERY_SECONDS = 10.0
FREE_BYTES_MIN = 512 * 2**20
FREE_SHARE_MIN = 0.05
_FOLDERS = 256


class OutsideCache(Rejected):
    """A path that a record names, and that no cache of ours made."""


class Cache:
    """Several processes use one folder. A file in it needs no sync: what is missing is fetched
    again. At its bound it waits for uploads; nothing is removed to make room.
    """

    def __init__(self, folder: Path, bytes_max: int) -> None:
        self.folder = folder
        self._bytes_max = bytes_max
        self._looked_at = float("-inf")
        self._reason: str | None = None
        self._looking = Lock()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for number in range(_FOLDERS):
            (folder / f"{number:02x}").mkdir(exist_ok=True, mode=0o700)

    def place(self) -> Path:
        """A name that no attempt had or will have."""
        attempt = uuid.uuid4().hex
        return self.folder / attempt[:2] / attempt

    def file(self, written: str) -> Path:
        """The cached file that a record names; a record may name any path, we take only ours."""
        path = Path(written)
        folder, name = path.parent, path.name
        is_ours = folder.parent == self.folder and len(name) == 32 and name.isalnum()
        if not is_ours or folder.name != name[:2]:
            raise OutsideCache(
                f"The record names a cached file outside {self.folder}, which no download of this "
                f"pipeline made. It is not read. If the cache has moved, set storage.cache_dir."
            )
        return path

    def drop(self, written: str) -> None:
        self.file(written).unlink(missing_ok=True)

    def why_it_waits(self) -> str | None:
        """A sentence while there is no room for more downloads."""
        with self._looking:
            now = time.monotonic()
            if now - self._looked_at >= LOOK_EVERY_SECONDS:
                self._looked_at = now
                self._reason = self._look()
            return self._reason

    def sweep(self, now: float, keep_seconds: float) -> int:
        """Removes unfinished files after a day, others after `keep_seconds`; says how many."""
        removed = 0
        for path, told in self._entries():
            limit = PART_SECONDS if path.suffix == ".part" else keep_seconds
            if now - told.st_mtime > limit:
                path.unlink(missing_ok=True)
                removed += 1
        return removed

    def _look(self) -> str | None:
        disk = shutil.disk_usage(self.folder)
        free = disk.free
        if free < min(FREE_BYTES_MIN, FREE_SHARE_MIN * disk.total):
            return (
                f"The disk of the cache {self.folder} has {free // 2**20} MiB left. Downloads wait "
                f"until uploads make room; free space there if they do not."
            )
        held = sum(told.st_size for _, told in self._entries())
        if held >= self._bytes_max:
            return (
                f"The cache {self.folder} holds {held // 2**20} MiB, its bound. Downloads wait "
                f"until uploads make room; raise storage.cache_max_bytes if they should not."
            )
        return None

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        """A file that goes while they are listed is no matter."""
        for number in range(_FOLDERS):
            with os.scandir(self.folder / f"{number:02x}") as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)
