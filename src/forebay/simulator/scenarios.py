"""The scenarios by name, and the script of each: what happens and what must come of it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from forebay.simulator.arrivals import Pace, arrivals
from forebay.simulator.composer import Composer, Sender
from forebay.simulator.endings import (
    AttachmentTruth,
    Ending,
    FileHostAddress,
    SimulatedEvent,
    Truth,
)
from forebay.simulator.scenario import Outage, Scenario, deck

__all__ = [
    "SCENARIOS",
    "AttachmentTruth",
    "Ending",
    "FileHostAddress",
    "Outage",
    "Scenario",
    "SimulatedEvent",
    "Truth",
    "UnknownScenario",
    "scenario_named",
    "script",
]

_STEADY = Pace(events_per_second=100.0)
_BURSTS = Pace(events_per_second=100.0, burst_every=500, burst_events=200, burst_factor=10.0)

# With four delays of 1, 2, 4 and 8 s an outage of up to seven seconds is one nothing dies of.
_OUTAGE_SECONDS = 7.0

CALM = Scenario(
    "calm",
    "good files, a few hiccups",
    _STEADY,
    events=deck(attachments=88, nothing=8, twins=2, repeat=2),
    files=deck(ok=94, octet=2, slow=2, busy=1, error=1),
)
STORM = Scenario(
    "storm",
    "everything at once, in bursts of ten times the rate",
    _BURSTS,
    events=deck(
        attachments=150, nothing=14, unassigned=3, malformed=8, unknown_domain=1, hostile_paths=3
    )
    | deck(repeat=10, renewed=5, doubled=3, twins=3),
    files=deck(ok=290, octet=4, slow=6, busy=16, throttled=4, error=10, reset=8, hang=2)
    | deck(cut=6, broken=6, html=3, disguised=2, program=1, encoded=1, empty=1, huge=1)
    | deck(error_always=1, cut_always=1, expired=2, denied=1, missing=2, gone=1)
    | deck(redirect_denied=2, redirect_loop=1, refused=14, hostile_name=8)
    | deck(expired_link=4, expiring_link=2),
    once=("large_file", "large_note"),
    outages=(Outage(after_share=0.4, seconds=_OUTAGE_SECONDS),),
)
OUTAGE = Scenario(
    "outage",
    "the file host is down for a while",
    _STEADY,
    events=deck(attachments=95, nothing=5),
    files=deck(ok=90, slow=2, busy=4, error=2, reset=2),
    outages=(Outage(after_share=0.3, seconds=_OUTAGE_SECONDS),),
)
POISON = Scenario(
    "poison",
    "malformed events, hostile links and names, huge files, pages under a PDF's name",
    _STEADY,
    events=deck(
        attachments=60, nothing=4, unassigned=4, malformed=14, unknown_domain=2, hostile_paths=8
    )
    | deck(doubled=4, twins=4),
    files=deck(ok=40, octet=4, html=6, disguised=4, program=4, encoded=4, empty=1, huge=4)
    | deck(cut_always=1, redirect_denied=6, redirect_loop=2, refused=70, hostile_name=24),
    once=("crowd", "large_note", "large_file", "endless_file"),
)
EXPIRY = Scenario(
    "expiry",
    "expired and expiring links",
    _STEADY,
    events=deck(attachments=90, nothing=2, renewed=8),
    files=deck(ok=60, expired_link=24, expiring_link=6, expired=10),
)
DUPLICATES = Scenario(
    "duplicates",
    "the same event again, fresh links under a known id, doubled links in one event",
    _STEADY,
    events=deck(attachments=50, nothing=5, repeat=20, renewed=10, doubled=10, twins=5),
    files=deck(ok=90, slow=2, busy=4, refused=2, missing=2),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {one.name: one for one in (CALM, STORM, OUTAGE, POISON, EXPIRY, DUPLICATES)}
)


class UnknownScenario(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is no scenario {name!r}, so nothing is simulated. "
            f"Write one of {', '.join(SCENARIOS)}."
        )


def scenario_named(name: str) -> Scenario:
    if name not in SCENARIOS:
        raise UnknownScenario(name)
    return SCENARIOS[name]


def script(
    scenario: str,
    seed: int,
    events: int,
    host: FileHostAddress,
    *,
    signed_at: datetime | None = None,
    events_per_second: float | None = None,
) -> Iterator[SimulatedEvent]:
    """Links are signed at `signed_at`, else at the last midnight (UTC), for seven days.

    Everything but the times in links and events is the same whenever they are signed.
    """
    chosen = scenario_named(scenario)
    pace = chosen.pace
    if events_per_second:
        pace = replace(pace, events_per_second=events_per_second)
    composer = Composer(chosen, seed, events, Sender(host, signed_at or _last_midnight()))
    moments = arrivals(pace)
    return (composer.compose(number, next(moments)) for number in range(events))


def _last_midnight() -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
