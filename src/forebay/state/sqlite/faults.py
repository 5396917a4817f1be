"""What SQLite's errors mean to a caller."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from forebay.core.errors import (
    AccessDenied,
    Damaged,
    ForebayError,
    Full,
    OutcomeUnknown,
    RowsRefused,
    Unavailable,
    Unusable,
)

_TOO_MUCH_FOR_A_COLUMN = (OverflowError, UnicodeEncodeError)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except _TOO_MUCH_FOR_A_COLUMN as error:
        raise _refused(error, path) from error
    except (apsw.Error, OSError) as error:
        raise translate(error, path) from error


@contextmanager
def translated_commit(path: Path) -> Iterator[None]:
    """A disk that was merely full stored nothing; of any other failure nobody knows."""
    try:
        yield
    except (apsw.FullError, apsw.BusyError) as error:
        raise translate(error, path) from error
    except apsw.Error as error:
        raise OutcomeUnknown(
            f"The disk of {path} failed while it made a change durable ({error}). The change may "
            f"or may not be there. Look at the disk; then read back what is stored."
        ) from error


def translate(error: apsw.Error | OSError, path: Path) -> ForebayError:
    match error:
        case apsw.ConstraintError() | apsw.MismatchError() | apsw.TooBigError():
            return _refused(error, path)
        case apsw.FullError() | OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return Full(
                f"The disk of {path} is full. Nothing of this was stored, what was stored before "
                f"is safe. Free space; it is tried again."
            )
        case apsw.BusyError() | apsw.LockedError():
            return Unavailable(
                f"{path} is locked by another program ({error}). Nothing was stored; it is tried "
                f"again. Close whatever holds it open (a database browser?)."
            )
        case apsw.NotADBError():
            return Damaged(
                f"{path} is not an SQLite file. Nothing was changed. Move it away to start empty, "
                f"or restore it from a backup."
            )
        case apsw.CorruptError():
            return Damaged(
                f"{path} is damaged ({error}). Nothing more is stored in it. Copy it away, then "
                f"restore it from a backup."
            )
        case _:
            return _to_be_looked_at(error, path)


def _to_be_looked_at(error: apsw.Error | OSError, path: Path) -> ForebayError:
    match error:
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError() | OSError():
            return AccessDenied(
                f"{path} cannot be opened for writing ({error}). Nothing was changed. Give this "
                f"user read and write rights on the file and its folder, or choose another."
            )
        case apsw.SQLError():
            return Unusable(
                f"{path} does not hold what this Forebay expects ({error}). Nothing was changed. "
                f"Find the program that altered it, or restore it from a backup."
            )
        case apsw.IOError() | apsw.ProtocolError():
            return Unavailable(
                f"The disk of {path} failed ({error}). Nothing of this was stored, what was stored "
                f"before is safe; it is tried again. Look at the disk."
            )
        case _:
            return Unusable(
                f"{path} cannot be used ({type(error).__name__}: {error}). Nothing was changed. "
                f"This is a fault of Forebay's: please report it."
            )


def _refused(error: Exception, path: Path) -> RowsRefused:
    return RowsRefused(
        f"{path} can never take this row as it is ({error}). Nothing was stored with it. Correct "
        f"the row, or the table's types and constraints."
    )
