"""What SQLite's errors mean to a caller."""

import errno
from pathlib import Path

import apsw

from forebay.core.errors import (
    AccessDenied,
    Damaged,
    ForebayError,
    Full,
    OutcomeUnknown,
    Unavailable,
    Unusable,
)


def translate(error: apsw.Error | OSError, path: Path) -> ForebayError:
    match error:
        case apsw.FullError() | OSError(errno=errno.ENOSPC):
            return Full(
                f"The disk of {path} is full. Nothing of this write was stored, what was "
                f"acknowledged is safe. Free space, or trim topics; then try again."
            )
        case apsw.NotADBError():
            return Damaged(
                f"{path} is not a broker's file. Nothing was changed. Move it away to start "
                f"empty, or restore it from a backup."
            )
        case apsw.CorruptError():
            return Damaged(
                f"{path} is damaged ({error}). Writing has stopped. Copy the folder away, then "
                f"restore it from a backup; `forebay doctor` says more."
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError():
            return AccessDenied(
                f"{path} cannot be opened for writing ({error}). Nothing was changed. Give this "
                f"user read and write rights on the file and its folder."
            )
        case apsw.BusyError() | apsw.LockedError():
            return Unavailable(
                f"{path} is locked by another program ({error}). Nothing was stored. Close "
                f"whatever holds it open (a database browser?) and try again."
            )
        case _:
            return Unavailable(
                f"The disk of {path} failed ({error}). Nothing of this was stored, what was "
                f"acknowledged is safe. Look at the disk; then try again."
            )


def is_failed_sync(error: apsw.Error) -> bool:
    return getattr(error, "extendedresult", 0) in {
        apsw.SQLITE_IOERR_FSYNC,
        apsw.SQLITE_IOERR_DIR_FSYNC,
    }


def commit_failed(error: apsw.Error, path: Path) -> ForebayError:
    """An error of COMMIT itself: a disk that was merely full stored nothing, else nobody knows."""
    if isinstance(error, apsw.FullError):
        return translate(error, path)
    return OutcomeUnknown(
        f"The disk of {path} failed while it made a write durable ({error}). The write may or may "
        f"not be there. Look at the disk; then send again or read back."
    )


def sync_refused(path: Path) -> ForebayError:
    # After a failed fsync the kernel may have dropped the pages: a second try would lie.
    return Unusable(
        f"The disk of {path} refused to make data durable. This process writes nothing more, what "
        f"was acknowledged is safe. Look at the disk, then start again."
    )


def wal_deleted(path: Path) -> ForebayError:
    return Damaged(
        f"{path}-wal was deleted while the broker was open. Writes since then are not there; "
        f"whether the last one is, is unknown. This process writes nothing more. Find the program "
        f"that opened or cleaned the folder, then start again."
    )
