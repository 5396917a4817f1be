"""Says what happened, one line an event, on one stream."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from string import Formatter
from threading import Lock
from typing import TextIO

from forebay.core.clock import Clock
from forebay.observability.catalogue import Event, EventName, Level, entry, is_logged
from forebay.observability.formats import Line, format_named
from forebay.observability.plain import plain, spoken
from forebay.observability.redaction import scrub_fields
from forebay.observability.settings import LogSettings

_ENVELOPE = ("timestamp", "level", "event")


class Emitter:
    """`emit` raises for an event that the catalogue does not know, and for nothing else.

    `strict` also raises for a field that the catalogue does not allow, which is otherwise dropped.
    """

    def __init__(
        self, stream: TextIO, settings: LogSettings, clock: Clock, *, strict: bool = False
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._strict = strict
        self._level: Level = settings.level or "info"
        terminal = stream.isatty()
        chosen = settings.format or ("console" if terminal else "json")
        self._format = format_named(chosen, colors=terminal)
        self._writing = Lock()
        self.dropped_fields = 0
        self.dropped_lines = 0

    def emit(self, event: EventName, **fields: object) -> None:
        known = entry(event)
        allowed = self._allowed(event, known, fields)
        if is_logged(event, self._level):
            self._write(self._line(event, known, allowed))

    def _allowed(
        self, event: EventName, known: Event, fields: Mapping[str, object]
    ) -> dict[str, object]:
        unknown = fields.keys() - known.fields
        if self._strict and unknown:
            raise ValueError(
                f"The event {event} has no field {', '.join(sorted(unknown))}; declare it in "
                f"observability/catalogue.py."
            )
        with self._writing:
            self.dropped_fields += len(unknown)
        return {name: plain(value) for name, value in fields.items() if name not in unknown}

    def _line(self, event: EventName, known: Event, fields: Mapping[str, object]) -> str:
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        line: Line = {
            "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": known.level,
            "event": event,
            "message": _sentence(known.message, fields),
            **fields,
        }
        return self._format(_redacted(line))

    def _write(self, line: str) -> None:
        """A closed pipe or a full disk must not stop the work that is told about."""
        with self._writing:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                self.dropped_lines += 1


def _redacted(line: Line) -> Line:
    envelope = {name: line[name] for name in _ENVELOPE}
    rest = {name: value for name, value in line.items() if name not in envelope}
    return envelope | scrub_fields(rest)


def _sentence(template: str, fields: Mapping[str, object]) -> str:
    return template.format(**{name: spoken(fields.get(name, "?")) for name in _names(template)})


@cache
def _names(template: str) -> frozenset[str]:
    """Of the sentences of the catalogue, which are few."""
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name)
