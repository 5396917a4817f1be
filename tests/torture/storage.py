"""A disk that loses power, fills up or fails, under a real broker."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

SECTOR = 512


@dataclass
class Image:
    """A file as the platter has it, and the writes that only the cache has."""

    durable: bytearray = field(default_factory=bytearray)
    cached: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for at, data in self.cached:
            _write(self.durable, at, data)
        self.cached.clear()

    def after_power_cut(self, chance: random.Random) -> bytes:
        """Unsynced writes reach the platter or not, sector by sector, in any combination."""
        content = bytearray(self.durable)
        for at, data in self.cached:
            if data is None:
                if chance.random() < 0.5:
                    _write(content, at, None)
                continue
            for start in range(0, len(data), SECTOR):
                if chance.random() < 0.5:
                    _write(content, at + start, data[start : start + SECTOR])
        return bytes(content)


def _write(content: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del content[at:]
        return
    content.extend(bytes(max(0, at - len(content))))
    content[at : at + len(data)] = data


class Disk(apsw.VFS):
    """SQLite's files through a cache that can be lost, and faults on the n-th write or sync."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self.images: dict[str, Image] = {}
        self.lock = threading.RLock()
        self.is_cut = False
        self.hits: Counter[str] = Counter()
        self.fault: Callable[[str], None] = lambda operation: None
        self._chance = chance
        super().__init__(name, "")

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return DiskFile(self, name, flags)

    def cut_power(self) -> dict[str, bytes]:
        with self.lock:
            self.is_cut = True
            return {
                Path(path).name: image.after_power_cut(self._chance)
                for path, image in self.images.items()
            }

    def xDelete(self, filename, syncdir):  # noqa: N802 - SQLite's name
        with self.lock:
            self.images.pop(filename, None)
            super().xDelete(filename, syncdir)

    def before(self, operation: str) -> None:
        if self.is_cut:
            raise apsw.IOError("the power is cut")
        self.hits[operation] += 1
        self.fault(operation)


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name, flags) -> None:
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._image = disk.images.setdefault(path or "", Image())
        super().__init__("", name, flags)

    def xWrite(self, data, offset):  # noqa: N802 - SQLite's name
        with self._disk.lock:
            self._disk.before("write")
            self._image.cached.append((offset, bytes(data)))
            super().xWrite(data, offset)

    def xTruncate(self, newsize):  # noqa: N802 - SQLite's name
        with self._disk.lock:
            self._disk.before("truncate")
            self._image.cached.append((newsize, None))
            super().xTruncate(newsize)

    def xSync(self, flags):  # noqa: N802 - SQLite's name
        with self._disk.lock:
            self._disk.before("sync")
            self._image.sync()
