"""Files in a folder: complete under their name or not there, and durable when `put` returns."""

import asyncio
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from forebay.core.errors import AccessDenied, Closed, Unavailable
from forebay.core.probe import NoProbe, Probe
from forebay.lakehouse.files.content import INLINE_BYTES_MAX, Content, digest
from forebay.lakehouse.files.faults import told_plainly
from forebay.lakehouse.files.local.durability import Durability, for_this_system
from forebay.lakehouse.files.local.placing import Placing
from forebay.lakehouse.files.local.torn import forget_pages
from forebay.lakehouse.files.local.tree import NOT_THERE, Tree
from forebay.lakehouse.files.local.walking import files_below
from forebay.lakehouse.files.names import check_name
from forebay.lakehouse.files.port import FileStat
from forebay.lakehouse.files.source import opened_file
from forebay.observability.catalogue import Emit, silent

Value = TypeVar("Value")

_LARGE_AT_ONCE = 2


class LocalFiles:
    def __init__(
        self,
        folder: Path,
        emit: Emit = silent,
        probe: Probe | None = None,
        durability: Callable[[Path, Tree], Durability] = for_this_system,
    ) -> None:
        self._folder = folder.absolute()
        self._tree = _open_tree(self._folder)
        self._probe = probe or NoProbe()
        self._placing = Placing(self._folder, self._tree, emit, self._probe)
        self._durability = durability(self._folder, self._tree)
        self._threads = ThreadPoolExecutor(_LARGE_AT_ONCE, thread_name_prefix="forebay-files")
        self._is_closed = False

    async def put(self, source: Path, name: str, *, size: int, sha256: str) -> None:
        parts = self._parts(name)
        content = Content(size, sha256.lower())
        copy = await self._run(size, lambda: self._placing.place(source, parts, content))
        self._probe.hit("files.after_placing")
        await self._become_durable(parts, source)
        if copy is not None:
            self._placing.drop_copy(copy)
        self._probe.hit("files.after_putting")

    async def stat(self, name: str) -> FileStat | None:
        *folders, leaf = self._parts(name)
        with (
            told_plainly(self._folder, name),
            suppress(*NOT_THERE),
            self._tree.folder(folders) as folder,
        ):
            found = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
            return FileStat(name, found.st_size) if stat.S_ISREG(found.st_mode) else None
        return None

    async def holds(self, name: str, *, size: int, sha256: str) -> bool:
        parts = self._parts(name)
        content = Content(size, sha256.lower())
        if not await self._run(size, lambda: self._has(parts, content)):
            return False
        await self._become_durable(parts)
        return True

    def list(self, prefix: str = "") -> Iterator[FileStat]:
        self._check_open()
        return self._list(check_name(prefix) if prefix else ())

    def digest(self, name: str) -> FileStat | None:
        parts = self._parts(name)
        with (
            told_plainly(self._folder, name),
            suppress(*NOT_THERE),
            self._tree.file(parts) as file,
        ):
            return FileStat(name, os.fstat(file).st_size, digest(file))
        return None

    def sweep(self, older_than: float) -> int:
        self._check_open()
        with told_plainly(self._folder):
            return self._placing.sweep(older_than)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self._threads.shutdown()
        self._durability.close()
        self._tree.close()

    def _parts(self, name: str) -> Sequence[str]:
        self._check_open()
        return check_name(name)

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed(f"The files in {self._folder} were closed by their owner.")

    async def _run(self, size: int, work: Callable[[], Value]) -> Value:
        """Small files on the event loop's own thread: a hop costs more than they do."""
        if size <= INLINE_BYTES_MAX:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _has(self, parts: Sequence[str], content: Content) -> bool:
        with (
            told_plainly(self._folder, "/".join(parts)),
            suppress(*NOT_THERE),
            self._tree.file(parts) as file,
        ):
            return content.is_in(file)
        return False

    def _list(self, parts: Sequence[str]) -> Iterator[FileStat]:
        with told_plainly(self._folder, "/".join(parts)):
            yield from files_below(self._tree, parts)

    async def _become_durable(self, parts: Sequence[str], source: Path | None = None) -> None:
        try:
            await self._durability.wait(parts)
        except Unavailable:
            self._forget_pages(parts, source)
            raise

    def _forget_pages(self, parts: Sequence[str], source: Path | None) -> None:
        """After a failed sync the kernel calls pages clean that the disk never got.

        Whoever compares them again must see what the disk holds, or a second try would lie.
        """
        with suppress(OSError), self._tree.file(parts) as stored:
            forget_pages(stored)
        if source is not None:
            with suppress(OSError), opened_file(source) as original:
                forget_pages(original)


def _open_tree(folder: Path) -> Tree:
    try:
        return Tree(folder)
    except OSError as error:
        raise AccessDenied(
            f"The folder of files {folder} cannot be used ({error.strerror}). Nothing was changed. "
            f"Choose a folder that this user may write to."
        ) from error
