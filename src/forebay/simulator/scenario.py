"""What a scenario is: decks of events and of links, a pace, and what befalls the file host."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from forebay.simulator.arrivals import Pace


@dataclass(frozen=True, slots=True)
class Outage:
    """Begins when this share of the events is sent. Whoever plays the script calls the host."""

    after_share: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """`once` are events of which one is enough."""

    name: str
    sentence: str
    pace: Pace
    events: Mapping[str, int]
    files: Mapping[str, int]
    once: tuple[str, ...] = ()
    outages: tuple[Outage, ...] = ()


def deck(**counts: int) -> MappingProxyType[str, int]:
    """`error_always` stands for `error.always`, `redirect_loop` for `redirect-loop`."""
    return MappingProxyType({_card(name): count for name, count in counts.items()})


def _card(name: str) -> str:
    if name.endswith("_always"):
        return name.replace("_always", ".always")
    return name.replace("_", "-") if name.startswith("redirect") else name
