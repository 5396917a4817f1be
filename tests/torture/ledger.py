"""What processes saw, written outside the broker: one append-only file each."""

import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_ENTRY = struct.Struct("<cdIqQI")  # kind, time, partition, offset, record number, process


class Entry(NamedTuple):
    """`a` acked · `d` delivered · `c` committed (offset is the next one) · `o` owned from now."""

    kind: str
    at: float
    partition: int
    offset: int
    number: int
    process: int


class Ledger:
    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        path = folder / f"{name}-{os.getpid()}.ledger"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, entries: list[tuple[int, int, int]]) -> None:
        """(partition, offset, number) of each; one write, so a kill leaves all of them or none."""
        now, process = time.monotonic(), os.getpid()
        packed = [_ENTRY.pack(kind.encode(), now, *entry, process) for entry in entries]
        os.write(self._descriptor, b"".join(packed))


def read_all(folder: Path, name: str = "*") -> Iterator[Entry]:
    for path in folder.glob(f"{name}-*.ledger"):
        content = path.read_bytes()
        whole = len(content) - len(content) % _ENTRY.size
        for kind, at, partition, offset, number, process in _ENTRY.iter_unpack(content[:whole]):
            yield Entry(kind.decode(), at, partition, offset, number, process)


def value_of(number: int) -> bytes:
    """A payload that proves itself."""
    body = struct.pack("<Q", number) + bytes(number % 200)
    return body + struct.pack("<I", zlib.crc32(body))


def number_of(value: bytes) -> int | None:
    """None where the content is not what was sent."""
    body, check = value[:-4], value[-4:]
    if len(body) < 8 or struct.unpack("<I", check)[0] != zlib.crc32(body):
        return None
    (number,) = struct.unpack_from("<Q", body)
    return int(number) if value_of(number) == value else None
