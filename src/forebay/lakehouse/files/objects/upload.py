"""How a file comes into a store: never over another, never visible in part."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore

from forebay.core.probe import Probe
from forebay.lakehouse.files.content import INLINE_BYTES_MAX, Content, pieces
from forebay.lakehouse.files.source import not_as_promised, opened_source

# Begins with a dot, as no name of a file does.
INCOMING = ".incoming"
HASH = "content_sha256"

# Up to here one request, which the store makes conditional; it is in memory while it is sent.
SINGLE_BYTES_MAX = 4_194_304
_PART_BYTES = 2_097_152
_PARTS_AT_ONCE = 2


class Upload:
    def __init__(self, store: AzureStore, probe: Probe) -> None:
        self._store = store
        self._probe = probe

    async def create(self, source: Path, name: str, content: Content) -> None:
        """Raises AlreadyExistsError and PreconditionError of the client, and what `put` raises."""
        if content.size <= SINGLE_BYTES_MAX:
            await self._create_at_once(source, name, content)
        else:
            await self._create_from_parts(source, name, content)

    async def _create_at_once(self, source: Path, name: str, content: Content) -> None:
        body = await _read(source, content)
        self._probe.hit("files.before_placing")
        await obstore.put_async(
            self._store,
            name,
            body,
            attributes={HASH: content.sha256},
            mode="create",
            use_multipart=False,
        )

    async def _create_from_parts(self, source: Path, name: str, content: Content) -> None:
        """Parts cannot be put together under a condition, but a copy can be made under one."""
        incoming = f"{INCOMING}/{secrets.token_hex(16)}"
        await self._write_parts(source, incoming, content)
        try:
            self._probe.hit("files.before_placing")
            await obstore.copy_async(self._store, incoming, name, overwrite=False)
        finally:
            with suppress(BaseError, FileNotFoundError):  # what stays behind is swept
                await obstore.delete_async(self._store, incoming)

    async def _write_parts(self, source: Path, incoming: str, content: Content) -> None:
        """A writer that is not closed leaves nothing to be seen."""
        writer = obstore.open_writer_async(
            self._store,
            incoming,
            attributes={HASH: content.sha256},
            buffer_size=_PART_BYTES,
            max_concurrency=_PARTS_AT_ONCE,
        )
        hashed, size = hashlib.sha256(), 0
        async for piece in _pieces_read_elsewhere(source):
            hashed.update(piece)
            size += len(piece)
            await writer.write(piece)
            self._probe.hit("files.while_copying")
        if (size, hashed.hexdigest()) != (content.size, content.sha256):
            raise not_as_promised(source, content)
        await writer.close()


async def _read(source: Path, content: Content) -> bytes:
    if content.size <= INLINE_BYTES_MAX:
        return _read_as_promised(source, content)
    return await asyncio.to_thread(_read_as_promised, source, content)


def _read_as_promised(source: Path, content: Content) -> bytes:
    with opened_source(source) as descriptor:
        if not content.is_in(descriptor):
            raise not_as_promised(source, content)
        return b"".join(pieces(descriptor))


async def _pieces_read_elsewhere(source: Path) -> AsyncIterator[bytes]:
    with opened_source(source) as descriptor:
        reading = pieces(descriptor)
        while piece := await asyncio.to_thread(next, reading, b""):
            yield piece
