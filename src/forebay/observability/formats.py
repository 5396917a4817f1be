"""The three ways to write an event: one line each, whatever the event carries."""

import re
from collections.abc import Callable
from typing import Any, TypeAlias, assert_never

import orjson
from structlog.dev import ConsoleRenderer
from structlog.processors import JSONRenderer

from forebay.observability.settings import LogFormat

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SHORT_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_NOTHING = "-"


Line: TypeAlias = dict[str, Any]
Format: TypeAlias = Callable[[Line], str]


def format_named(name: LogFormat, *, colors: bool) -> Format:
    match name:
        case "json":
            return _json_line()
        case "tab":
            return tab_line
        case "console":
            return _console_line(colors=colors)
        case _:
            assert_never(name)


def tab_line(line: Line) -> str:
    """TIMESTAMP LEVEL LOGGER MOD_TYPE MOD_NAME MESSAGE EXTRA_JSON."""
    extra = dict(line)
    columns = [
        extra.pop("timestamp"),
        extra.pop("level").upper(),
        f"forebay.{line['event'].partition('.')[0]}",
        extra.pop("mod_type", _NOTHING),
        extra.pop("mod_name", _NOTHING),
        extra.pop("message"),
        _json(extra),
    ]
    return "\t".join(escaped(column) for column in columns)


def escaped(text: str) -> str:
    """Nothing in a text may end a line, start a column or speak to a terminal."""
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _json(value: object, **_structlog_options: object) -> str:
    return orjson.dumps(value).decode()


def _json_line() -> Format:
    render = JSONRenderer(serializer=_json)
    return lambda line: str(render(None, line["level"], line))


def _console_line(*, colors: bool) -> Format:
    render = ConsoleRenderer(
        colors=colors, event_key="message", pad_event_to=0, pad_level=False, sort_keys=False
    )
    return lambda line: render(None, line["level"], _for_a_terminal(line))


def _for_a_terminal(line: Line) -> Line:
    shown = {
        name: escaped(value) if isinstance(value, str) else value for name, value in line.items()
    }
    return {**shown, "timestamp": line["timestamp"][11:23]}
