"""What goes wrong with files, as a caller is told. `place` is a folder or a plain address."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.core.errors import AccessDenied, ForebayError, Full, Unavailable, Unusable
from forebay.lakehouse.files.names import without_last_part
from forebay.lakehouse.files.port import Differs

_FULL = {errno.ENOSPC, errno.EDQUOT}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_IN_THE_WAY = {errno.ENOTDIR, errno.EISDIR}


@contextmanager
def told_plainly(folder: Path, name: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise translate(error, folder, name) from error


def translate(error: OSError, folder: Path, name: str = "") -> ForebayError:
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return Full(
            f"The disk of {folder} is full ({reason}). Nothing of this was stored, what was stored "
            f"is safe. Free space; then it is tried again."
        )
    if error.errno in _DENIED:
        return AccessDenied(
            f"{folder} refuses to store or read a file ({reason}). Nothing was changed. Give this "
            f"user read and write rights on the folder and all below it."
        )
    if error.errno in _IN_THE_WAY:
        return in_the_way(folder, name)
    if error.errno == errno.EXDEV:
        return Unusable(
            f"A folder below {folder} is on another file system. Nothing was stored there: files "
            f"are made durable on one. Unmount it, or make it a place of its own."
        )
    if error.errno == errno.ENOENT:
        return Unavailable(
            f"{folder}, or a folder below it, vanished while a file was stored. Nothing of this "
            f"was stored. It is tried again; if {folder} itself was moved, start again."
        )
    return Unavailable(
        f"The disk of {folder} failed ({reason}). Nothing of this counts as stored, what was "
        f"stored is safe. Look at the disk; then it is tried again."
    )


def in_the_way(place: object, name: str) -> Differs:
    return Differs(
        f"{without_last_part(name)} below {place} is taken by something that is no file of ours: "
        f"a folder, or a symbolic link, which is never followed. Nothing was changed. Look at it "
        f"and move it away."
    )


def other_content(place: object, name: str) -> Differs:
    return Differs(
        f"{without_last_part(name)} below {place} holds other content already. It was not "
        f"touched, the new content was not stored. Compare them; to store the new one, move the "
        f"old one away and replay the record."
    )
