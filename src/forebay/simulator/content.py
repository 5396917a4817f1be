"""Files made from a seed and a size: the host serves them, the truth knows their hashes."""

import base64
import hashlib
import zlib
from collections.abc import Iterator
from random import Random

PIECE_BYTES = 65_536
SMALLEST_BYTES = 256

_TYPES = {
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "xml": "application/xml",
}
_HEADS = {
    "pdf": b"%PDF-1.7\n%",
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "jpg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01",
    "xml": b'<?xml version="1.0" encoding="UTF-8"?>\n<estimate><!--',
}
_TAILS = {
    "pdf": b"\n%%EOF\n",
    "png": b"\x00\x00\x00\x00IEND\xaeB`\x82",
    "jpg": b"\xff\xd9",
    "xml": b"--></estimate>\n",
}


def _filler() -> bytes:
    """Letters and digits, so that nothing inside looks like another type of file."""
    raw = Random(20_260_105).randbytes(PIECE_BYTES // 4 * 3)  # noqa: S311  no secret
    return base64.b64encode(raw) * 2


_FILLER = _filler()


def media_type(extension: str) -> str:
    return _TYPES.get(extension.lower(), "application/pdf")


def pieces(seed: str, size: int, extension: str) -> Iterator[bytes]:
    """At least `SMALLEST_BYTES` in all, in pieces of at most `PIECE_BYTES`."""
    head, tail = _frame(seed, extension)
    start = zlib.crc32(seed.encode()) % PIECE_BYTES
    left = max(size, SMALLEST_BYTES) - len(head) - len(tail)
    piece = head
    while left > 0:
        taken = min(left, PIECE_BYTES - len(piece))
        yield piece + _FILLER[start : start + taken]
        left -= taken
        piece = b""
    yield piece + tail


def content(seed: str, size: int, extension: str) -> bytes:
    return b"".join(pieces(seed, size, extension))


def size_and_hash(seed: str, size: int, extension: str) -> tuple[int, str]:
    digest, total = hashlib.sha256(), 0
    for piece in pieces(seed, size, extension):
        digest.update(piece)
        total += len(piece)
    return total, digest.hexdigest()


def _frame(seed: str, extension: str) -> tuple[bytes, bytes]:
    kind = extension.lower()
    kind = "jpg" if kind == "jpeg" else kind
    kind = kind if kind in _HEADS else "pdf"
    return _HEADS[kind] + seed[:100].encode() + b" ", _TAILS[kind]
