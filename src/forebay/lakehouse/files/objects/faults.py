"""What the errors of an object store mean to a caller."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from forebay.core.errors import (
    AccessDenied,
    ForebayError,
    InvalidName,
    InvalidRequest,
    Unavailable,
    Unusable,
)
from forebay.observability.redaction import scrub

_REASON_LENGTH_MAX = 160
_STATUS = re.compile(r"status code: (?P<status>\d{3})")
_CODE = re.compile(r"<Code>(?P<code>\w{1,80})</Code>")
_SENDING = re.compile(r" - (?P<reason>[^\n]+)")
_PASSES_BY_ITSELF = {408, 429}


@contextmanager
def told_plainly(place: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        raise translate(error, place) from error


def translate(error: Exception, place: str) -> ForebayError:
    """The client's own text names whole addresses and its insides: only the reason is kept."""
    text = str(error)
    status = _status(text)
    reason = _reason(text, status)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in {401, 403}:
        return AccessDenied(
            f"{place} refuses this client ({reason}). Nothing was stored. Give it the right to "
            f"read and write there, or correct its credentials."
        )
    if isinstance(error, FileNotFoundError) or status == 404:
        return Unusable(
            f"{place} does not exist ({reason}). Nothing was stored. Create the container or "
            f"workspace item, or correct the address."
        )
    if isinstance(error, InvalidPathError):
        return InvalidName(
            f"{place} does not take a name of this kind. Nothing was stored. Change the rule that "
            f"makes these names."
        )
    if isinstance(error, NotSupportedError):
        return Unusable(
            f"{place} does not offer what storing files needs ({reason}). Nothing was stored. "
            f"Choose another place."
        )
    if status and 400 <= status < 500 and status not in _PASSES_BY_ITSELF:
        return InvalidRequest(
            f"{place} refused a request that will not pass as it is ({reason}). Nothing was "
            f"stored. Look up the code in the documentation of the store."
        )
    return Unavailable(
        f"{place} did not answer well ({reason}). Whether this was stored is found out when it is "
        f"tried again. If it lasts, look at the store and the network."
    )


def _status(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found["status"]) if found else None


def _reason(text: str, status: int | None) -> str:
    if status:
        code = _CODE.search(text)
        return f"HTTP {status}, {code['code']}" if code else f"HTTP {status}"
    sending = _SENDING.search(text.partition("\n\nDebug source")[0])
    return scrub(sending["reason"] if sending else text.partition("\n")[0])[:_REASON_LENGTH_MAX]
