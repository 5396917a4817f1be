"""What a lost power supply, or a disk that failed, leaves of a file whose name outlived it."""

import os

from forebay.lakehouse.files.content import PIECE_BYTES, pieces

SECTOR_BYTES = 512


def forget_pages(descriptor: int) -> None:
    """Later readers see what the disk holds. Only Linux can be told to."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def is_torn(stored: int, original: int) -> bool:
    """True if the stored file is the original with bytes missing, and may not have been durable.

    It keeps a second name, the cached file's or a copy's, until it is durable: what has only one is
    whole, and other content. The original holds all that a torn file holds, so replacing it loses
    nothing.
    """
    found = os.fstat(stored)
    if found.st_nlink == 1 or found.st_size > os.fstat(original).st_size:
        return False
    return all(
        piece_is_torn(piece, os.pread(original, len(piece), number * PIECE_BYTES))
        for number, piece in enumerate(pieces(stored))
    )


def piece_is_torn(stored: bytes, original: bytes) -> bool:
    """Every sector is the original's, or zeros. Equal pieces count: the tear may be elsewhere."""
    if stored == original:
        return True
    for start in range(0, len(stored), SECTOR_BYTES):
        sector = stored[start : start + SECTOR_BYTES]
        if sector != original[start : start + len(sector)] and any(sector):
            return False
    return True
