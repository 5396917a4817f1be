"""Points in time and durations as people write them."""

import re
from datetime import UTC, datetime

from forebay.cli.errors import WrongUse

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART = r"\d+(?:\.\d+)?\s*(?:ms|[smhdw])"
_DURATION = re.compile(rf"(?:{_PART}\s*)+")
_ONE_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])")


def duration_ms(text: str) -> int:
    written = text.strip().lower()
    if not _DURATION.fullmatch(written):
        raise WrongUse(f"{text!r} is no duration; write 30s, 10m, 2h30m or 7d.")
    return round(sum(float(number) * _UNITS[unit] for number, unit in _ONE_PART.findall(written)))


def time_ms(text: str, now_ms: int) -> int:
    """`10m`, `10m ago`, or ISO; without a zone the machine's own."""
    written = text.strip().lower()
    if written == "now":
        return now_ms
    ago = written.removesuffix("ago").strip()
    if _DURATION.fullmatch(ago):
        return now_ms - duration_ms(ago)
    try:
        moment = datetime.fromisoformat(text.strip())
        return round(moment.timestamp() * 1_000)
    except (ValueError, OverflowError, OSError) as problem:
        raise WrongUse(
            f"{text!r} is no time; write 10m (ago), 2026-11-18 or 2026-11-18T09:10:00Z."
        ) from problem


def iso(timestamp_ms: int) -> str:
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1_000, UTC)
    except (ValueError, OverflowError, OSError):
        return "-"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def short_duration(milliseconds: int) -> str:
    for unit in ("d", "h", "m", "s"):
        if milliseconds >= _UNITS[unit] and milliseconds % _UNITS[unit] == 0:
            return f"{milliseconds // _UNITS[unit]} {unit}"
    return f"{milliseconds} ms"
