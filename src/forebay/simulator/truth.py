"""What a whole script must come to."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from forebay.simulator.endings import Ending, SimulatedEvent


@dataclass(slots=True)
class Expected:
    """`events` counts by trace id: repeats and renewed records are not among them.

    `events` = `with_attachments` + `nothing_to_do` + `malformed`,
    `attachments` = `stored` + `dead_lettered` + `refused`.
    """

    records: int = 0
    events: int = 0
    with_attachments: int = 0
    nothing_to_do: int = 0
    malformed: int = 0
    repeats: int = 0
    renewed: int = 0
    attachments: int = 0
    stored: int = 0
    dead_lettered: int = 0
    refused: int = 0
    bytes_stored: int = 0

    def add(self, event: SimulatedEvent) -> None:
        self.records += 1
        self._count_event(event)
        for attachment in event.truth.attachments:
            self._count_attachment(attachment.ending)

    def as_object(self) -> dict[str, int]:
        return asdict(self)

    def _count_event(self, event: SimulatedEvent) -> None:
        truth = event.truth
        if truth.kind == "repeat":
            self.repeats += 1
            return
        if truth.renewed:
            self.renewed += 1
            return
        self.events += 1
        match truth.kind:
            case "attachments":
                self.with_attachments += 1
            case "nothing_to_do":
                self.nothing_to_do += 1
            case "malformed":
                self.malformed += 1

    def _count_attachment(self, ending: Ending) -> None:
        self.attachments += 1
        self.bytes_stored += ending.size
        match ending.state:
            case "stored":
                self.stored += 1
            case "dead_lettered":
                self.dead_lettered += 1
            case "refused":
                self.refused += 1


def expected(events: Iterable[SimulatedEvent]) -> Expected:
    total = Expected()
    for event in events:
        total.add(event)
    return total


def endings(events: Iterable[SimulatedEvent]) -> Iterator[tuple[str, str, Ending]]:
    """(trace id, URL, what must come of it), each once."""
    for event in events:
        for attachment in event.truth.attachments:
            yield event.truth.trace_id, attachment.url, attachment.ending
