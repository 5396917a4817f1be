"""Durations as people write them: "200ms", "5s", "1m", "10m", "2h", "1d", or seconds."""

import re

from forebay.core.errors import InvalidRequest

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\Z")


def seconds(duration: float | str) -> float:
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        if 0 <= duration < float("inf"):
            return float(duration)
    elif isinstance(duration, str) and (found := _WRITTEN.match(duration.strip())):
        return float(found[1]) * _UNITS[found[2]]
    raise InvalidRequest(
        f"{duration!r} is no duration; write seconds, or text such as 200ms, 5s, 1m, 2h or 1d."
    )


def written(duration_seconds: float) -> str:
    """The shortest exact way to write it, also usable in a topic's name."""
    for unit in ("d", "h", "m", "s"):
        amount = duration_seconds / _UNITS[unit]
        if amount >= 1 and amount == int(amount):
            return f"{int(amount)}{unit}"
    return f"{round(duration_seconds * 1000)}ms"
