"""What a person sees of a dead letter without asking for all of it.

Queries of URLs carry signatures and names of files. Fields that the stage calls sensitive, and
those whose name says so, are hidden wherever their value stands: a reason may quote it.
"""

import base64
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from forebay.observability.redaction import HIDDEN, scrub

_URL = re.compile(
    r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.\-]{1,15}://)(?P<user>[^\s\"'<>/?#@]*@)?"
    r"(?P<place>[^\s\"'<>?#]*)(?P<query>[?#][^\s\"'<>]*)?"
)
_QUOTED_LENGTH_MIN = 4


@dataclass(frozen=True, slots=True)
class Mask:
    """`values` are the texts of hidden fields, the longest first."""

    names: frozenset[str]
    values: tuple[str, ...]

    def text(self, text: str) -> str:
        for value in self.values:
            text = text.replace(value, HIDDEN)
        return _URL.sub(_without_query, text)

    def payload(self, value: bytes | None) -> object:
        """As JSON can hold it: parsed where it is JSON, else its text, else base64."""
        parsed = as_json_value(value)
        if not isinstance(parsed, str | Undecoded):
            return self._masked(parsed)
        if self.names:
            return f"{HIDDEN} (no JSON, and some fields of it are sensitive: --reveal shows it)"
        return parsed.as_object() if isinstance(parsed, Undecoded) else self.text(parsed)

    def _masked(self, value: Any) -> Any:
        match value:
            case dict():
                return {
                    name: HIDDEN if _is_hidden(name, self.names) else self._masked(item)
                    for name, item in value.items()
                }
            case list():
                return [self._masked(item) for item in value]
            case str():
                return self.text(value)
            case _:
                return value


class NoMask:
    """For who asked for all of it."""

    def text(self, text: str) -> str:
        return text

    def payload(self, value: bytes | None) -> object:
        parsed = as_json_value(value)
        return parsed.as_object() if isinstance(parsed, Undecoded) else parsed


@dataclass(frozen=True, slots=True)
class Undecoded:
    value: bytes

    def as_object(self) -> dict[str, str]:
        return {"base64": base64.b64encode(self.value).decode()}


def mask_for(value: bytes | None, sensitive: Collection[str]) -> Mask:
    names = frozenset(sensitive)
    found = set(_hidden_texts(as_json_value(value), names))
    return Mask(names, tuple(sorted(found, key=len, reverse=True)))


def as_json_value(value: bytes | None) -> Any:
    """What the value says as JSON, its text where it is none, Undecoded where it is no text."""
    if value is None:
        return None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        pass
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Undecoded(value)


def _hidden_texts(value: Any, names: frozenset[str]) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                if _is_hidden(name, names):
                    yield from _texts(item)
                else:
                    yield from _hidden_texts(item, names)
        case list():
            for item in value:
                yield from _hidden_texts(item, names)


def _texts(value: Any) -> Iterator[str]:
    """Shorter ones stand in other words by chance."""
    match value:
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case bool() | None:
            return
        case _ if len(str(value)) >= _QUOTED_LENGTH_MIN:
            yield str(value)


def _is_hidden(name: str, names: frozenset[str]) -> bool:
    return name in names or HIDDEN in scrub(f"{name}=value")


def _without_query(found: re.Match[str]) -> str:
    user = f"{HIDDEN}@" if found["user"] else ""
    query = f"?{HIDDEN}" if found["query"] else ""
    return f"{found['scheme']}{user}{found['place']}{query}"
