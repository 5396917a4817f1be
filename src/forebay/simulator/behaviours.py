"""What the file host does with a link, written into the link's path, and what must come of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from forebay.simulator.endings import Ending

ALWAYS = 1_000_000
_ALWAYS_TEXT = "always"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """`number`: how often it fails before it serves, or which of several targets it names."""

    name: str
    number: int = 0

    def __str__(self) -> str:
        if not self.number:
            return self.name
        return f"{self.name}.{_ALWAYS_TEXT if self.number == ALWAYS else self.number}"


def behaviour(text: str) -> Behaviour:
    name, _, number = text.partition(".")
    if number == _ALWAYS_TEXT:
        return Behaviour(name, ALWAYS)
    return Behaviour(name, int(number) if number.isdecimal() else 0)


def _dead(category: str, word: str) -> Ending:
    return Ending("dead_lettered", category=category, word=word)


SERVES = frozenset({"ok", "slow", "octet"})

# They fail `number` times, then serve. The word is that of the failure which uses up the attempts.
FLAKY: Mapping[str, str] = MappingProxyType(
    {
        "busy": "busy",
        "error": "server_error",
        "throttled": "busy",
        "reset": "unreachable",
        "hang": "unreachable",
        "cut": "truncated",
        "broken": "truncated",
    }
)

# Whether a redirect to an allowed place is followed is a setting, so no scenario holds one.
_NEVER_SERVES: Mapping[str, Ending] = MappingProxyType(
    {
        "empty": _dead("transient", "empty_file"),
        "crawl": _dead("transient", "too_slow"),
        "never": _dead("transient", "timeout"),
        "html": _dead("permanent", "wrong_type"),
        "disguised": _dead("permanent", "wrong_type"),
        "program": _dead("permanent", "wrong_type"),
        "encoded": _dead("permanent", "encoded_body"),
        "huge": _dead("permanent", "too_large"),
        "endless": _dead("permanent", "too_large"),
        "expired": _dead("permanent", "expired"),
        "denied": _dead("permanent", "denied"),
        "missing": _dead("permanent", "not_found"),
        "gone": _dead("permanent", "not_found"),
        "redirect-denied": _dead("permanent", "denied_address"),
        "redirect-loop": _dead("permanent", "too_many_redirects"),
    }
)

EXPIRED = _dead("permanent", "expired")


def dead_end(what: Behaviour) -> Ending | None:
    """None: the file is served in the end."""
    if what.name in FLAKY and what.number == ALWAYS:
        return _dead("transient", FLAKY[what.name])
    return _NEVER_SERVES.get(what.name)
