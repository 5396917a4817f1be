"""One line that a run keeps fresh on a terminal; nothing where nobody looks."""

from collections.abc import Sequence
from shutil import get_terminal_size
from typing import TextIO

from forebay.engine.health import StageHealth

EVERY_SECONDS = 0.5


class StatusLine:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._shown_at = 0.0
        self._handled = 0
        self._rate = 0.0

    def show(self, healths: Sequence[StageHealth], now: float) -> None:
        if not self._is_shown or now - self._shown_at < EVERY_SECONDS:
            return
        text = self._text(healths, now)
        width = get_terminal_size().columns - 1
        self._stream.write(f"\r\x1b[2K{text[:width]}")
        self._stream.flush()
        self._shown_at = now

    def clear(self) -> None:
        if self._is_shown and self._shown_at:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def _text(self, healths: Sequence[StageHealth], now: float) -> str:
        handled = count(healths, "record", "handled")
        if self._shown_at:
            self._rate = max(0, handled - self._handled) / (now - self._shown_at)
        self._handled = handled
        return line_of(healths, self._rate)


def line_of(healths: Sequence[StageHealth], rate: float) -> str:
    held = sum(health.unresolved for health in healths if health.kind == "record")
    waiting = sum(health.unresolved for health in healths if health.kind == "scheduler")
    oldest = max((health.oldest_seconds for health in healths), default=0.0)
    parts = [
        f"{count(healths, 'record', 'handled'):,} handled",
        f"{rate:,.0f}/s",
        f"{held:,} in flight",
        f"{waiting:,} retrying",
        f"{count(healths, 'record', 'dead_lettered'):,} dead letters",
    ]
    if oldest >= 1:
        parts.append(f"oldest {oldest:.0f} s")
    troubles = [reason for health in healths for reason in health.reasons]
    return " · ".join(parts + troubles[:1])


def count(healths: Sequence[StageHealth], kind: str, name: str) -> int:
    return sum(int(str(health.counters[name])) for health in healths if health.kind == kind)
