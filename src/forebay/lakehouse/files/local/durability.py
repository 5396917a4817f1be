"""One `syncfs` for all files that wait for it: a tenth of what an fsync of each costs.

Measured in reference/xact-cost-budget.md, section 2. A file is linked first, then its caller waits
here; the call that starts after that covers it, with its name and its folders.
"""

import asyncio
import ctypes
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

from forebay.core.errors import Closed
from forebay.lakehouse.files.faults import told_plainly, translate
from forebay.lakehouse.files.local.tree import Tree

Sync: TypeAlias = Callable[[int], None]
_Waiter: TypeAlias = asyncio.Future[None]


def find_syncfs() -> Sync | None:
    """None where the system has no such call. Since Linux 5.8 it tells of failed writes."""
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "syncfs", None)
    if call is None:
        return None

    def syncfs(descriptor: int) -> None:
        if call(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    return syncfs


class Durability(Protocol):
    async def wait(self, parts: Sequence[str]) -> None:
        """The file is durable with its name when it returns, or it raises."""
        ...

    def close(self) -> None: ...


def for_this_system(folder: Path, tree: Tree) -> Durability:
    sync = find_syncfs()
    return OneForAll(folder, tree, sync) if sync else EachByItself(folder, tree)


class EachByItself:
    """Where there is no `syncfs`: the file, and every folder that may be new."""

    def __init__(self, folder: Path, tree: Tree) -> None:
        self._folder = folder
        self._tree = tree

    async def wait(self, parts: Sequence[str]) -> None:
        await asyncio.to_thread(self._sync, parts)

    def close(self) -> None:
        pass

    def _sync(self, parts: Sequence[str]) -> None:
        with told_plainly(self._folder, "/".join(parts)):
            with self._tree.file(parts) as file:
                os.fsync(file)
            for depth in range(len(parts)):
                with self._tree.folder(parts[:depth]) as folder:
                    os.fsync(folder)


class OneForAll:
    """May be waited for from any event loop. Its thread starts with the first that waits."""

    def __init__(self, folder: Path, tree: Tree, sync: Sync) -> None:
        self._folder = folder
        self._descriptor = tree.descriptor
        self._sync = sync
        self._waiting: list[_Waiter] = []
        self._changed = threading.Condition()
        self._is_rung = False
        self._is_closed = False
        self._thread: threading.Thread | None = None

    async def wait(self, parts: Sequence[str]) -> None:  # noqa: ARG002 - the call covers all names
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        with self._changed:
            if self._is_closed:
                raise Closed(f"{self._folder} was closed before this file was durable.")
            self._start_once()
            self._waiting.append(waiter)
        # Not at once: others that are ready to run may still come along in the same call.
        loop.call_soon(self._ring)
        await waiter

    def close(self) -> None:
        """Those that wait get their answer first. May repeat."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _ring(self) -> None:
        with self._changed:
            self._is_rung = True
            self._changed.notify()

    def _start_once(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="forebay-syncfs", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while not self._is_over():
            if waiters := self._take():
                _answer(waiters, self._make_durable())

    def _is_over(self) -> bool:
        with self._changed:
            return self._is_closed and not self._waiting

    def _take(self) -> list[_Waiter]:
        """Empty where those who rang are answered already."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_rung or self._is_closed)
            self._is_rung = False
            taken, self._waiting = self._waiting, []
            return taken

    def _make_durable(self) -> Callable[[], Exception] | None:
        try:
            self._sync(self._descriptor)
        except OSError as error:
            failure = error
            return lambda: translate(failure, self._folder)
        return None


def _answer(waiters: Sequence[_Waiter], failure: Callable[[], Exception] | None) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Waiter]] = defaultdict(list)
    for waiter in waiters:
        by_loop[waiter.get_loop()].append(waiter)
    for loop, its_waiters in by_loop.items():
        with suppress(RuntimeError):  # a loop that was closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, its_waiters, failure)


def _settle(waiters: Sequence[_Waiter], failure: Callable[[], Exception] | None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if failure is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(failure())
