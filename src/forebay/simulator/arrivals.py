"""When events arrive: a steady rate with bursts in between."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """Of every `burst_every` events, the last `burst_events` come `burst_factor` times as fast."""

    events_per_second: float
    burst_every: int = 0
    burst_events: int = 0
    burst_factor: float = 1.0


def arrivals(pace: Pace) -> Iterator[float]:
    """Seconds since the first event, without end."""
    steady = 1.0 / pace.events_per_second
    at_seconds, number = 0.0, 0
    while True:
        yield at_seconds
        number += 1
        at_seconds += steady / pace.burst_factor if _is_in_burst(pace, number) else steady


def _is_in_burst(pace: Pace, number: int) -> bool:
    if not pace.burst_every:
        return False
    return number % pace.burst_every >= pace.burst_every - pace.burst_events
