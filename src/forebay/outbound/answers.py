"""What a server's status means for the record that was to be fetched with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import MappingProxyType

from forebay.outbound.errors import Answer, OutboundFailed, ending

BODY_BYTES_MAX = 4_096
RETRY_AFTER_SECONDS_MAX = 3_600.0

_KINDS: Mapping[int, str] = MappingProxyType(
    {
        401: "denied",
        403: "denied",
        404: "not_found",
        408: "timeout",
        410: "not_found",
        425: "busy",
        429: "busy",
        501: "http_refused",
        503: "busy",
        505: "http_refused",
    }
)
_EXPIRED_TEXTS = (
    b"request has expired",
    b"<code>expiredtoken",
    b"signature not valid in the specified time frame",
    b"policy has expired",
)


@dataclass(frozen=True, slots=True)
class Said:
    """`body`: the first BODY_BYTES_MAX of it."""

    host: str
    http_status: int
    body: bytes
    retry_after_seconds: float | None


def kind_of_status(status: int) -> str:
    if status in _KINDS:
        return _KINDS[status]
    if 400 <= status < 500:
        return "http_refused"
    return "server_error" if 500 <= status < 600 else "unexpected_status"


def refusal(said: Said, failure: type[OutboundFailed], kind: str | None = None) -> OutboundFailed:
    """`kind` where the caller knows better what the status means."""
    kind = kind or kind_of_status(said.http_status)
    if kind in {"denied", "http_refused"} and _tells_of_expiry(said.body):
        kind = "expired"
    told = "says that the link has expired" if kind == "expired" else "answered"
    return failure(
        kind,
        f"{said.host} {told} (HTTP {said.http_status}). {ending(kind)}",
        Answer(said.http_status, said.retry_after_seconds),
    )


def retry_after_seconds(header: str | None, now: float) -> float | None:
    """Seconds or a date, at most an hour; None for what is neither."""
    if not header:
        return None
    written = header.strip()
    if written.isascii() and written.isdigit():
        return min(float(written), RETRY_AFTER_SECONDS_MAX)
    try:
        at = parsedate_to_datetime(written).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, at - now), RETRY_AFTER_SECONDS_MAX)


def _tells_of_expiry(body: bytes) -> bool:
    text = body.lower()
    return any(told in text for told in _EXPIRED_TEXTS)
