"""Places that are opened by the first who needs them: not every worker needs each."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from forebay.core.errors import Closed
from forebay.lakehouse.files.port import Files, FileStat

Thing = TypeVar("Thing")


def nobody(_thing: object) -> None:
    """For those who want nothing to follow an opening."""


class OnFirstUse(Generic[Thing]):
    """`opened` is told once. What could not be opened is tried again at the next use."""

    def __init__(self, opens: Callable[[], Thing], opened: Callable[[Thing], None]) -> None:
        self._opens = opens
        self._opened = opened
        self._opening = Lock()
        self.thing: Thing | None = None

    def open(self) -> Thing:
        with self._opening:
            if self.thing is None:
                self.thing = self._opens()
                self._opened(self.thing)
            return self.thing


class FilesOnFirstUse:
    def __init__(
        self, place: str, opens: Callable[[], Files], opened: Callable[[Files], None] = nobody
    ) -> None:
        self._place = place
        self._files = OnFirstUse(opens, opened)
        self._is_closed = False

    async def put(self, source: Path, name: str, *, size: int, sha256: str) -> None:
        await self._open().put(source, name, size=size, sha256=sha256)

    async def stat(self, name: str) -> FileStat | None:
        return await self._open().stat(name)

    async def holds(self, name: str, *, size: int, sha256: str) -> bool:
        return await self._open().holds(name, size=size, sha256=sha256)

    def list(self, prefix: str = "") -> Iterator[FileStat]:
        return self._open().list(prefix)

    def digest(self, name: str) -> FileStat | None:
        return self._open().digest(name)

    def sweep(self, older_than: float) -> int:
        return self._open().sweep(older_than)

    async def close(self) -> None:
        self._is_closed = True
        if self._files.thing is not None:
            await self._files.thing.close()

    def _open(self) -> Files:
        if self._is_closed:
            raise Closed(f"The files at {self._place} were closed by their owner.")
        return self._files.open()
