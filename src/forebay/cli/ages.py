"""How long ago, and about how long: as people say it, one unit and no more."""

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000))


def rough_duration(milliseconds: float) -> str:
    """ "2 d", "5 m", "4 s": rounded down, as ages are."""
    for unit, length in _UNITS:
        if milliseconds >= length:
            return f"{int(milliseconds // length):,} {unit}"
    return "0 s"


def ago(timestamp_ms: int, now_ms: int) -> str:
    return f"{rough_duration(now_ms - timestamp_ms)} ago"
