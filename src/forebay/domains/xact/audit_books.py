"""What an audit of xact knows so far: a few bits for each key, never the keys themselves."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import urlsplit

from forebay.core.envelope import Origin
from forebay.operations.domain_audit import Kind, Problem, Problems
from forebay.operations.marks import Marks
from forebay.outbound.errors import link

IN_SOURCE = 1
WAITS = 2
DEAD = 4
REFUSED = 8
STORED = 16
FAILED_ROW = 32
LETTER = 64
TOLD = 128
"""The bits of an attachment. Its state is the first of STATES whose bit is set, else it is lost."""

EXPECTED = 2
PRESENT = 4
"""The bits of a row of an event, beside IN_SOURCE and TOLD."""

LOST = "lost"
_HOST = re.compile(r"[0-9a-z.:-]{1,253}")
STATES: Mapping[str, int] = {
    "stored": STORED,
    "refused": REFUSED,
    "dead_lettered": DEAD,
    "waiting": WAITS,
}


def state_of(bits: int) -> str:
    return next((name for name, bit in STATES.items() if bits & bit), LOST)


def attachment_number(trace_id: object, url: object) -> int:
    return hash((trace_id, url))


def event_number(trace_id: object, links: str) -> int:
    """Of a row of the events' table, whose key has all links as one text."""
    return hash(("event", trace_id, links))


def record_number(stage: str, origin: Origin) -> int:
    """Of a record as a stage first met it. Its time tells it from one of an earlier log."""
    return hash((stage, origin))


@dataclass(slots=True)
class Books:
    """`aside`: records, events and attachments that have a dead letter or come back later.

    `paths`: destinations of files whose row is still on its way.
    """

    attachments: Marks = field(default_factory=Marks)
    events: Marks = field(default_factory=Marks)
    traces: Marks = field(default_factory=Marks)
    aside: Marks = field(default_factory=Marks)
    paths: Marks = field(default_factory=Marks)
    days: set[date] = field(default_factory=set)
    states_of_events: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    problems: Problems = field(default_factory=Problems)

    def add(self, kind: Kind, detail: str, trace_id: object = None, url: object = None) -> None:
        if not self.problems.has_room(kind):
            self.problems.counts[kind] += 1
            return
        trace = None if trace_id is None else str(trace_id)
        told = None if url is None else host_and_link(str(url))
        self.problems.add(Problem(kind, detail, trace, told))

    def states_of_attachments(self) -> dict[str, int]:
        """Of those that an event of the source names."""
        found = dict.fromkeys((*STATES, LOST), 0)
        for bits, count in self.attachments.counts().items():
            if bits & IN_SOURCE:
                found[state_of(bits)] += count
        return found

    @property
    def missing_events(self) -> int:
        counts = self.events.counts()
        return sum(n for bits, n in counts.items() if bits & EXPECTED and not bits & PRESENT)


def host_and_link(url: str) -> str:
    """A link's query is a secret, its path may name a person, and a malformed one hides both."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    return f"{host}, {link(url)}" if _HOST.fullmatch(host) else link(url)
