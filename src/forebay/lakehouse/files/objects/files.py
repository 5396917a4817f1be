"""Files in an object store: created once, under a condition, and compared where they exist."""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from forebay.core.errors import Closed, Unavailable
from forebay.core.probe import NoProbe, Probe
from forebay.lakehouse.files.content import Content
from forebay.lakehouse.files.faults import in_the_way, other_content
from forebay.lakehouse.files.names import check_name, without_last_part
from forebay.lakehouse.files.objects.faults import told_plainly
from forebay.lakehouse.files.objects.store import Credential, open_store, shown_address
from forebay.lakehouse.files.objects.upload import HASH, INCOMING, SINGLE_BYTES_MAX, Upload
from forebay.lakehouse.files.port import FileStat

PATIENCE_SECONDS = 30.0

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_IS_FOLDER = "hdi_isfolder"
# A copy inside the store may be finished some moments after it was answered.
_LOOKS_SECONDS = (0.0, 0.2, 0.8, 3.2)


class ObjectFiles:
    """Below `url`, for instance abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH."""

    def __init__(
        self,
        url: str,
        options: Mapping[str, str] = _NO_OPTIONS,
        credential: Credential | None = None,
        *,
        probe: Probe | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """`options` are named as those of Delta tables; `credential` gives Entra tokens instead."""
        self._place = shown_address(url)
        self._store = open_store(url, options, credential, patience_seconds)
        self._probe = probe or NoProbe()
        self._upload = Upload(self._store, self._probe)
        self._is_closed = False

    async def put(self, source: Path, name: str, *, size: int, sha256: str) -> None:
        self._check(name)
        content = Content(size, sha256.lower())
        with told_plainly(self._place):
            if size > SINGLE_BYTES_MAX and await self._is_there_already(name, content):
                return
            await self._create(source, name, content)

    async def stat(self, name: str) -> FileStat | None:
        self._check(name)
        with told_plainly(self._place):
            return await self._stat(name)

    async def holds(self, name: str, *, size: int, sha256: str) -> bool:
        self._check(name)
        with told_plainly(self._place):
            found = await self._stat(name)
            return found is not None and await self._is_same(found, Content(size, sha256.lower()))

    def list(self, prefix: str = "") -> Iterator[FileStat]:
        self._check_open()
        if prefix:
            check_name(prefix)
        return self._list(prefix)

    def digest(self, name: str) -> FileStat | None:
        self._check(name)
        with told_plainly(self._place), suppress(FileNotFoundError):
            hashed, size = hashlib.sha256(), 0
            for piece in obstore.get(self._store, name):
                hashed.update(piece)
                size += len(piece)
            return FileStat(name, size, hashed.hexdigest())
        return None

    def sweep(self, older_than: float) -> int:
        self._check_open()
        with told_plainly(self._place):
            old = [
                found["path"]
                for chunk in obstore.list(self._store, INCOMING)
                for found in chunk
                if found["last_modified"].timestamp() < older_than
            ]
            for path in old:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, path)
        return len(old)

    async def close(self) -> None:
        self._is_closed = True

    def _check(self, name: str) -> None:
        self._check_open()
        check_name(name)

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed(f"The files at {self._place} were closed by their owner.")

    async def _create(self, source: Path, name: str, content: Content) -> None:
        try:
            await self._upload.create(source, name, content)
        except (AlreadyExistsError, PreconditionError):
            if not await self._is_there_already(name, content):
                raise in_the_way(self._place, name) from None
        else:
            self._probe.hit("files.after_placing")
            await self._verify(name, content)
        self._probe.hit("files.after_putting")

    async def _is_there_already(self, name: str, content: Content) -> bool:
        """False where there is no file of that name. Raises Differs."""
        found = await self._stat(name)
        if found is None:
            return False
        if not await self._is_same(found, content):
            raise other_content(self._place, name)
        return True

    async def _is_same(self, found: FileStat, content: Content) -> bool:
        if found.size != content.size:
            return False
        if found.sha256 is None:
            read = await asyncio.to_thread(self.digest, found.name)
            return read is not None and (read.size, read.sha256) == (content.size, content.sha256)
        return found.sha256 == content.sha256

    async def _stat(self, name: str) -> FileStat | None:
        try:
            found = await obstore.get_async(self._store, name, options={"head": True})
        except FileNotFoundError:
            return None
        if found.attributes.get(_IS_FOLDER) == "true":
            return None
        sha256 = found.attributes.get(HASH)
        return FileStat(name, found.meta["size"], sha256)

    async def _verify(self, name: str, content: Content) -> None:
        for seconds in _LOOKS_SECONDS:
            await asyncio.sleep(seconds)
            found = await self._stat(name)
            if found is not None and await self._is_same(found, content):
                return
        raise Unavailable(
            f"{self._place} took {without_last_part(name)} of {content.size} bytes, but does not "
            f"show it. It does not count as stored and is tried again. If it lasts, look at the "
            f"store."
        )

    def _list(self, prefix: str) -> Iterator[FileStat]:
        with told_plainly(self._place):
            for chunk in obstore.list(self._store, prefix or None):
                for found in chunk:
                    if not _is_hidden(found["path"]):
                        yield FileStat(found["path"], found["size"])


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path
