"""What must never leave the process, taken out of free text: the last step before a line is made.

Patterns cannot recognise names; the catalogue's allow-list of fields is what keeps those out. Every
pattern starts where a token starts or is bounded, so that hostile text costs linear time.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

TEXT_LENGTH_MAX = 8_192
HIDDEN = "***"
_SHORT = 64

_URL = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.\-]{1,15})://(?P<rest>[^\s\"<>]*)")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)\s{1,4}\S{4,}", re.IGNORECASE)
_TELLING_NAMES = (
    "signature|token|secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|account[_-]?key"
    "|private[_-]?key|credential|authorization|(?<![a-z])sig(?![a-z])"
)
_ASSIGNMENT = re.compile(
    rf"(?P<name>(?:{_TELLING_NAMES})[\w.\-]{{0,40}}[\"']?\s{{0,4}}[=:]\s{{0,4}})"
    r"(?P<value>\"(?:[^\"\\]|\\.)*+(?:\"|$)|'(?:[^'\\]|\\.)*+(?:'|$)|\S+)",
    re.IGNORECASE,
)
_JSON_WEB_TOKEN = re.compile(r"(?<![\w\-])eyJ[\w\-]{8,}(?:\.[\w\-]+)*")
_EMAIL = re.compile(r"(?<![^\s@<>\"(),;:\[\]])[^\s@<>\"(),;:\[\]]++@[\w.\-]+")
_PHONE = re.compile(
    r"(?<!\w)\+\d(?:[ ().\-]{0,2}\d){7,14}(?!\d)"
    r"|(?<![\w.\-])(?:\(\d{3}\) ?|\d{3}[.\-])\d{3}[.\-]\d{4}(?![\w.\-])"
)


# What every pattern below needs somewhere: without it there is nothing to take out.
_ANYTHING = re.compile(r"[@=:]|\b(?:bearer|basic)\s|eyJ|\+\d|\d{3}[).\-]", re.IGNORECASE)


def scrub(text: str) -> str:
    """Names and sentences that every line has are looked through once."""
    if len(text) <= _SHORT:
        return _scrub_short(text) if _ANYTHING.search(text) else text
    return _scrub(text)


@lru_cache(maxsize=256)
def _scrub_short(text: str) -> str:
    return _scrub(text)


def _scrub(text: str) -> str:
    text = _cut(text)
    text = _URL.sub(_short_url, text)
    text = _AUTHORIZATION.sub(rf"\1 {HIDDEN}", text)
    text = _ASSIGNMENT.sub(rf"\g<name>{HIDDEN}", text)
    text = _JSON_WEB_TOKEN.sub(HIDDEN, text)
    text = _EMAIL.sub(f"{HIDDEN}@{HIDDEN}", text)
    return _PHONE.sub(HIDDEN, text)


def scrub_fields(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: _scrub_value(value) for name, value in fields.items()}


def _scrub_value(value: object) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrub_value(item) for item in value]
    if isinstance(value, dict):
        return {scrub(str(name)): _scrub_value(item) for name, item in value.items()}
    return value


def _cut(text: str) -> str:
    """Cut where a token ends: half a token is not recognised any more."""
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    return text[:TEXT_LENGTH_MAX].rsplit(None, 1)[0] + " …"


def _short_url(found: re.Match[str]) -> str:
    """`scheme://host/first-segment/…`: no user, no path that could name a file, no query."""
    authority, slash, path = _before_query(found["rest"]).partition("/")
    host = authority.rpartition("@")[2]
    first, deeper, _ = path.partition("/")
    kept = f"{found['scheme']}://{host}"
    if not slash:
        return kept if found["rest"] == authority else f"{kept}…"
    return f"{kept}/{first}/…" if deeper else f"{kept}/…"


def _before_query(rest: str) -> str:
    return re.split(r"[?#]", rest, maxsplit=1)[0]
