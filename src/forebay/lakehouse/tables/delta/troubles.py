"""What the Delta client raises, as the errors of Forebay."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import (
    CommitFailedError,
    DeltaProtocolError,
    SchemaMismatchError,
    TableNotFoundError,
)

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
from forebay.lakehouse.tables.delta.location import TableLocation

_REASON_CHARACTERS_MAX = 300
_QUERY = re.compile(r"\?\S+")
_DECORATION = re.compile(r"\x1b\[[0-9;]*m|↳")
_STACK_LINE = re.compile(r"\d+: |stack backtrace")
_FULL = re.compile(r"os error (28|122)\b|No space left", re.IGNORECASE)
_DENIED = re.compile(
    r"os error (1|13|30)\b|unauthenticated|unauthorized|permission ?denied|forbidden|read-?only"
    r"|AuthenticationFailed|AuthorizationFailure|status: 40[13]",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"failed validation check|Non-nullable|violates|Invariant", re.IGNORECASE)
_TORN = re.compile(r"Json error|Parquet error|Invalid Checkpoint|Truncated|EOF", re.IGNORECASE)


@contextmanager
def told_when_reading(location: TableLocation) -> Iterator[None]:
    """Whatever the client raises inside becomes an error of ours, and nothing was changed."""
    try:
        yield
    except (ForebayError, CommitFailedError):
        raise
    except BaseException as error:
        if not _is_the_clients(error):
            raise
        raise _when_reading(error, location) from error


@contextmanager
def told_when_writing(location: TableLocation) -> Iterator[None]:
    """The same; what is not known to have failed may have been stored."""
    try:
        yield
    except (ForebayError, CommitFailedError):
        raise
    except BaseException as error:
        if not _is_the_clients(error):
            raise
        raise _when_writing(error, location) from error


def _is_the_clients(error: BaseException) -> bool:
    """A panic of the client's native part is no Exception, and would end the thread unsaid."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _when_reading(error: BaseException, location: TableLocation) -> ForebayError:
    reason = reason_in(error)
    if _DENIED.search(str(error)):
        return _denied(location, reason)
    if isinstance(error, TableNotFoundError):
        return Unusable(
            f"There is no table at {location} ({reason}). Nothing was changed. Give the place of a "
            f"table, or give this user write rights on that folder."
        )
    if isinstance(error, DeltaProtocolError):
        return Unusable(
            f"Table {location} uses a feature of Delta that this version cannot handle ({reason}). "
            f"Nothing was changed. Switch that feature off, or choose another table."
        )
    if _TORN.search(str(error)):
        return Damaged(
            f"The log of table {location} cannot be read ({reason}). Nothing was changed. Restore "
            f"the table's _delta_log, or choose another table."
        )
    return Unavailable(
        f"Table {location} cannot be read ({reason}). Nothing was changed; it is tried again. Look "
        f"at the store."
    )


def _when_writing(error: BaseException, location: TableLocation) -> ForebayError:
    reason, text = reason_in(error), str(error)
    if isinstance(error, SchemaMismatchError | DeltaProtocolError):
        return Unusable(
            f"Table {location} takes no rows as they are declared ({reason}). Nothing was stored. "
            f"Compare the declaration with `forebay tables show`."
        )
    if _REFUSED.search(text):
        return RowsRefused(
            f"Table {location} refuses rows ({reason}). Nothing was stored. Correct the rows, or "
            f"the table's constraint."
        )
    if _FULL.search(text):
        return Full(
            f"The disk of table {location} is full. The batch is held and tried again, the "
            f"position is looked at first. Free space."
        )
    if _DENIED.search(text):
        return _denied(location, reason)
    return OutcomeUnknown(
        f"Rows for table {location} may or may not have been stored ({reason}). The position is "
        f"looked up before anything more is written. Look at the store."
    )


def _denied(location: TableLocation, reason: str) -> AccessDenied:
    return AccessDenied(
        f"The store of table {location} denies access ({reason}). Nothing was stored. Give this "
        f"identity read and write rights there, or correct its credentials."
    )


def reason_in(error: BaseException) -> str:
    """One line without the queries of addresses, which may hold signatures."""
    lines = [line.strip() for line in _DECORATION.sub("", str(error)).splitlines()]
    told = [line for line in lines if line and not _STACK_LINE.match(line)]
    return (_QUERY.sub("?…", ": ".join(told)) or type(error).__name__)[:_REASON_CHARACTERS_MAX]
