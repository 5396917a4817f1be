"""What can go wrong on the way out. No sentence holds a URL: a host, and a link's fingerprint."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from forebay.core.errors import ForebayError
from forebay.core.failures import AUTH, CIRCUIT_OPEN, PERMANENT, TRANSIENT, is_tried_again

CATEGORIES: Mapping[str, str] = MappingProxyType(
    {
        "bad_character": PERMANENT,
        "too_long": PERMANENT,
        "no_scheme": PERMANENT,
        "scheme_refused": PERMANENT,
        "no_host": PERMANENT,
        "userinfo": PERMANENT,
        "port_refused": PERMANENT,
        "invalid_host": PERMANENT,
        "noncanonical_address": PERMANENT,
        "denied_address": PERMANENT,
        "internal_name": PERMANENT,
        "host_refused": PERMANENT,
        "downgrade": PERMANENT,
        "redirect_refused": PERMANENT,
        "too_many_redirects": PERMANENT,
        "expired": PERMANENT,
        "denied": PERMANENT,
        "not_found": PERMANENT,
        "http_refused": PERMANENT,
        "unexpected_status": PERMANENT,
        "encoded_body": PERMANENT,
        "wrong_type": PERMANENT,
        "too_large": PERMANENT,
        "tls": PERMANENT,
        "bad_answer": TRANSIENT,
        "busy": TRANSIENT,
        "server_error": TRANSIENT,
        "dns": TRANSIENT,
        "unreachable": TRANSIENT,
        "timeout": TRANSIENT,
        "too_slow": TRANSIENT,
        "truncated": TRANSIENT,
        "empty_file": TRANSIENT,
        "target_busy": TRANSIENT,
        "unauthorized": AUTH,
        "login_redirect": AUTH,
        "circuit_open": CIRCUIT_OPEN,
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said along with its refusal."""

    http_status: int | None = None
    retry_after_seconds: float | None = None


NO_ANSWER = Answer()


class OutboundFailed(ForebayError):
    """`kind` says what happened in a word, `category` what becomes of the record."""

    def __init__(self, kind: str, sentence: str, answer: Answer = NO_ANSWER) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.category = CATEGORIES[kind]
        self.http_status = answer.http_status
        self.retry_after_seconds = answer.retry_after_seconds

    def __reduce__(self) -> tuple[type["OutboundFailed"], tuple[str, str, Answer]]:
        answer = Answer(self.http_status, self.retry_after_seconds)
        return type(self), (self.kind, str(self), answer)


class DownloadFailed(OutboundFailed):
    """Nothing of the file is left behind."""


class UrlRefused(DownloadFailed):
    """By a rule of ours, for good."""


class RequestFailed(OutboundFailed):
    """A call of `context.http`."""


def link(url: str) -> str:
    """How a URL is told of: in quotes, so that failures of many links are still one group."""
    fingerprint = hashlib.sha256(url.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    return f"link '{fingerprint}'"


def ending(kind: str) -> str:
    """What the system does about it and what a person can do, for the end of a sentence."""
    if is_tried_again(CATEGORIES[kind]):
        return "It is tried again."
    return "It is not tried again; mend the link or the rules for it, then replay."
