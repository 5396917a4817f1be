"""From a file in the cache to its destination."""

import hashlib
from pathlib import PurePosixPath

from forebay.attachments.files import CachedFile
from forebay.core.errors import Unavailable
from forebay.lakehouse.files.port import Differs, Files, SourceDiffers, SourceGone

_MARK_CHARACTERS = 8
_PART_BYTES_MAX = 255


class CacheLost(Unavailable):
    """The cached file is gone or damaged, and the destination does not have it either."""


async def upload(cached: CachedFile, destination: str, url: str, files: Files) -> str:
    """The name under which it is durable: `destination`, or one beside it where that is taken."""
    for name in (destination, beside(destination, url)):
        try:
            await files.put(cached.path, name, size=cached.size, sha256=cached.sha256)
        except Differs:
            continue
        except (SourceGone, SourceDiffers) as lost:
            stored = await _stored_before(cached, destination, url, files)
            if stored is None:
                raise CacheLost(f"{lost} It is downloaded again.") from lost
            return stored
        return name
    raise Differs(
        f"{destination} and {beside(destination, url)} hold other content than this attachment. "
        f"Nothing was overwritten. Look at both, move what is wrong away, then replay."
    )


async def _stored_before(
    cached: CachedFile, destination: str, url: str, files: Files
) -> str | None:
    """An upload whose result was not acknowledged is found here when it is made again."""
    for name in (destination, beside(destination, url)):
        if await files.holds(name, size=cached.size, sha256=cached.sha256):
            return name
    return None


def beside(destination: str, url: str) -> str:
    """Another file's name is taken: the link tells the two apart, the same on every attempt."""
    path = PurePosixPath(destination)
    mark = hashlib.sha256(url.encode("utf-8", "backslashreplace")).hexdigest()[:_MARK_CHARACTERS]
    ending = f"_{mark}{path.suffix}"
    stem = path.stem.encode()[: _PART_BYTES_MAX - len(ending.encode())].decode(errors="ignore")
    return str(path.with_name(f"{stem}{ending}"))
