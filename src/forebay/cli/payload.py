"""Bytes as JSON and as a line on a terminal, and back; null, text and binary stay apart."""

import base64
import binascii
import re
from typing import TypeAlias

from forebay.cli.errors import WrongUse
from forebay.core.records import Header, Headers

Payload: TypeAlias = str | dict[str, str] | None

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WHITE = {"\t": "\\t", "\n": "\\n"}


def to_json(value: bytes | None) -> Payload:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def headers_to_json(headers: Headers) -> dict[str, Payload] | list[list[Payload]]:
    """An object, or pairs where a name occurs twice."""
    names = {name for name, _ in headers}
    if len(names) == len(headers):
        return {name: to_json(value) for name, value in headers}
    return [[name, to_json(value)] for name, value in headers]


def from_json(value: object, what: str) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return _encoded(value, what)
        case {"base64": str(text), **rest} if not rest:
            return _decoded(text, what)
        case _:
            raise WrongUse(f'the {what} must be text, null or {{"base64": "…"}}')


def headers_from_json(value: object) -> tuple[Header, ...]:
    match value:
        case None:
            return ()
        case dict():
            pairs = list(value.items())
        case list() if all(isinstance(pair, list) and len(pair) == 2 for pair in value):
            pairs = [(name, text) for name, text in value]
        case _:
            raise WrongUse('the headers must be {"name": "value"} or [["name", "value"]]')
    if not all(isinstance(name, str) for name, _ in pairs):
        raise WrongUse("a header's name must be text")
    return tuple((name, from_json(text, f"header {name}")) for name, text in pairs)


def one_line(value: bytes | None, length_max: int | None = None) -> str:
    if value is None:
        return "(null)"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = f"(binary, {len(value):,} bytes) {base64.b64encode(value).decode()}"
    shown = printable(text)
    if length_max is None or len(shown) <= length_max:
        return shown
    return f"{shown[:length_max]}… ({len(value):,} bytes)"


def printable(text: str) -> str:
    """A record must not speak to the terminal that shows it."""
    for character, escape in _WHITE.items():
        text = text.replace(character, escape)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as problem:
        raise WrongUse(f"the {what} holds half a character; send bytes as base64") from problem


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as problem:
        raise WrongUse(f"the {what} is not valid base64") from problem
