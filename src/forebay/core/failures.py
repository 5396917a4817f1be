"""A failure, told so that a person can group, understand and act on it."""

import hashlib
import math
import re
from dataclasses import dataclass

from forebay.core.errors import AccessDenied, ForebayError, Rejected, Unavailable

REASON_LENGTH_MAX = 1_024
STACK_LENGTH_MAX = 65_536
HEADER_STACK_LENGTH_MAX = 4_096  # all headers of ours together stay below 16 KiB

TRANSIENT = "transient"
AUTH = "auth"
PERMANENT = "permanent"
CIRCUIT_OPEN = "circuit_open"
UNKNOWN = "unknown"
UNDECODABLE = "undecodable"
TIMEOUT = "timeout"
EXHAUSTED = "exhausted"
KILLER = "killer"
NONSENSE = "nonsense"

_MAY_PASS = (OSError, TimeoutError, EOFError, Unavailable)
_VARYING = re.compile(r"0x[0-9a-fA-F]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|\d+|'[^']*'|\"[^\"]*\"")


def writable(text: object) -> str:
    """As UTF-8 can hold it: half characters, as in file names, are spelt out."""
    return str(text).encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Failure:
    """`error` is the exception's name, "" where the handler said so itself.

    `retry_after_seconds`: how long to wait, where the world outside said it. It does not travel.
    """

    category: str
    reason: str
    error: str = ""
    stack: str = ""
    retry_after_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("category", "reason", "error", "stack"):
            object.__setattr__(self, name, writable(getattr(self, name)))
        object.__setattr__(self, "reason", self.reason[:REASON_LENGTH_MAX])
        object.__setattr__(self, "stack", self.stack[-STACK_LENGTH_MAX:])

    def fingerprint(self, stage: str) -> str:
        """The same for failures with one cause: numbers, ids and quoted values do not count."""
        shape = _VARYING.sub("#", self.reason)
        told = f"{stage}\0{self.category}\0{self.error}\0{shape}"
        return hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def category_of(error: BaseException) -> str:
    """Unknown is tried again: a fault nobody foresaw is oftener of the world than of the record."""
    told = getattr(error, "category", None)
    if isinstance(told, str) and told:
        return told
    if isinstance(error, AccessDenied):
        return AUTH
    if isinstance(error, _MAY_PASS):
        return TRANSIENT
    if isinstance(error, Rejected):
        return PERMANENT
    return UNKNOWN


def retry_after_of(error: BaseException) -> float | None:
    """What an exception says of it in `retry_after_seconds`."""
    told = getattr(error, "retry_after_seconds", None)
    if isinstance(told, int | float) and not isinstance(told, bool) and 0 <= told < math.inf:
        return float(told)
    return None


def is_tried_again(category: str) -> bool:
    return category in {TRANSIENT, AUTH, UNKNOWN, CIRCUIT_OPEN}


def reason_of(error: BaseException) -> str:
    """A sentence of ours speaks for itself; another's needs its class to be understood."""
    if isinstance(error, ForebayError):
        return str(error)
    name = type(error).__name__
    try:
        told = str(error)
    except Exception:  # noqa: BLE001  a user's class; its name must do
        told = ""
    return f"{name}: {told}" if told else name
