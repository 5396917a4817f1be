"""What the demo shows at one moment, as lines of text."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from forebay.cli.demo.observer import Tally
from forebay.cli.demo.pace import STEPS, Pace
from forebay.domains.xact.settings import DOMAIN
from forebay.engine.health import StageHealth

NARROW = 96
MARGIN = " " * 10
SAYS_OLDEST_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Moment:
    """`closing` are the lines below it: how far the audit is, then what it found."""

    pace: Pace
    tally: Tally
    sent: int
    events: int
    healths: Sequence[StageHealth]
    now_ms: int
    latest: Sequence[str] = ()
    closing: Sequence[str] = ()


def lines(moment: Moment, width: int, height: int) -> list[str]:
    """All but the closing, and no more than there is room for: the latest gives way."""
    head = [*_steps(moment, width), *_standing(moment, width)]
    room = max(1, height - len(head) - len(moment.closing) - 3)
    told = list(moment.latest)[-room:]
    latest = [
        f"{' latest' if number == 0 else '':<10}{told[number]}" for number in range(len(told))
    ]
    return [*head, *latest, *([""] if moment.closing else [])]


def folded(closing: Sequence[str], width: int) -> list[str]:
    """All of it, under its heading."""
    return [
        part
        for line in closing
        for part in wrap(line, max(width, 30), break_on_hyphens=False, subsequent_indent=MARGIN)
    ]


def plain_line(moment: Moment) -> str:
    return f" {DOMAIN:<8} {_rate(moment)} · {' · '.join(_facts(moment))}"


def _steps(moment: Moment, width: int) -> list[str]:
    bars = [f"{step} {moment.pace.bars(step)}" for step in STEPS.values()]
    head = f" {DOMAIN:<8} {_rate(moment)}"
    if width >= NARROW:
        return [f"{head}   {'  '.join(bars)}"]
    return [head, f"{MARGIN}{'  '.join(bars[:2])}", f"{MARGIN}{'  '.join(bars[2:])}"]


def _rate(moment: Moment) -> str:
    return f"{moment.pace.events_per_second:,} events/s"


def _standing(moment: Moment, width: int) -> list[str]:
    """On as many lines as it takes."""
    told: list[str] = []
    for fact in _facts(moment):
        if told and len(told[-1]) + len(fact) + 3 < width:
            told[-1] += f" · {fact}"
        else:
            told.append(f"{MARGIN}{fact}")
    return told


def _facts(moment: Moment) -> list[str]:
    tally = moment.tally
    facts = [
        f"sent {moment.sent:,} of {moment.events:,}",
        f"stored {tally.stored:,}",
        f"waiting {tally.waiting:,}",
        _retrying(moment),
        f"dead letters {tally.dead_letters:,}",
        f"refused {tally.refused:,}",
    ]
    oldest = max((h.oldest_seconds for h in moment.healths if h.kind == "record"), default=0.0)
    if oldest >= SAYS_OLDEST_SECONDS:
        facts.append(f"oldest {oldest:.1f} s")
    return facts


def _retrying(moment: Moment) -> str:
    schedulers = [health for health in moment.healths if health.kind == "scheduler"]
    count = sum(health.unresolved for health in schedulers)
    due = min((h.next_due_ms for h in schedulers if h.next_due_ms is not None), default=None)
    if not count or due is None:
        return f"retrying {count:,}"
    return f"retrying {count:,} (next in {max(0, due - moment.now_ms) / 1000:.0f} s)"
