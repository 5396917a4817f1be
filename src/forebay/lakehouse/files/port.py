"""What Forebay asks of a place that keeps files: a folder, or a container of an object store.

Names are relative paths with `/` between their parts; names.py says what may stand in them. A name
that it refuses raises InvalidName from every method.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from forebay.core.errors import Rejected


class Differs(Rejected):
    """Something else has that name already. It was not touched; a person must look."""


class SourceGone(Rejected):
    """There is no source file: it was swept, or stored and deleted before. Ask `holds`."""


class SourceDiffers(Rejected):
    """The source file has not the size and hash that were promised. Nothing was stored."""


@dataclass(frozen=True, slots=True)
class FileStat:
    name: str
    size: int
    sha256: str | None = None
    """In hexadecimal; None where the place does not keep it: `digest` reads the content."""


class Files(Protocol):
    """May be used from any thread and event loop. Every method may be repeated.

    All raise Unavailable where it may pass (Full among it), Unusable where a person must act
    (AccessDenied among it), and Closed after `close`.
    """

    async def put(self, source: Path, name: str, *, size: int, sha256: str) -> None:
        """Durable under its name when it returns; the source stays. Never visible in part.

        The source is compared with `size` and `sha256` (hexadecimal) before it is stored: raises
        SourceGone and SourceDiffers. Idempotent: the same content under that name is success.
        Other content is never overwritten: raises Differs. The one exception is a write of this
        very content that a lost power supply tore before it was durable: it ends early, or has
        zeros in whole sectors, and it has not lost its second name yet. It is replaced in one
        step, which loses nothing, because all that it holds is in the source too.

        The stored file may be a second name of the source: never write into a source again, and
        delete it only after this returned.
        """
        ...

    async def stat(self, name: str) -> FileStat | None:
        """None where there is no file of that name. Reads no content."""
        ...

    async def holds(self, name: str, *, size: int, sha256: str) -> bool:
        """True if exactly this content is there, durable. May read it."""
        ...

    def list(self, prefix: str = "") -> Iterator[FileStat]:
        """Every file below the folder `prefix` ("" is all), in no order. Blocking, streaming."""
        ...

    def digest(self, name: str) -> FileStat | None:
        """Like `stat`, with the hash of the content as it is now. Blocking; reads all of it."""
        ...

    def sweep(self, older_than: float) -> int:
        """Removes what interrupted puts left behind before that time; says how many. Blocking."""
        ...

    async def close(self) -> None:
        """Waits for what was handed in. May repeat."""
        ...
