"""Writes the events of a script, one after the other, each with its truth."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from forebay.simulator.behaviours import Behaviour
from forebay.simulator.decks import Deck, cards
from forebay.simulator.endings import FileHostAddress, SimulatedEvent, Truth
from forebay.simulator.files import Attachment, Files
from forebay.simulator.hostile import (
    HOSTILE_ASSIGNMENTS,
    HOSTILE_SUBTYPES,
    MALFORMED_VARIANTS,
    not_an_event,
)
from forebay.simulator.links import FileLink
from forebay.simulator.people import claim_data
from forebay.simulator.scenario import Scenario

CROWD_MOST = 10_000
LARGE_NOTE_CHARACTERS = 600_000
LARGE_FILE_BYTES = 60_000_000
REMEMBERED_EVENTS = 64

_TYPE_PREFIX = "verisk.claims.property.xn."
_SUBTYPES = {
    "documentsReceived": 5,
    "firstNoticeOfLossReceived": 2,
    "estimatePackageReceived": 4,
    "estimateCreated": 1,
    "inspectionCompleted": 1,
}
# None: the member is not there.
_NO_ATTACHMENTS: tuple[list[object] | None, ...] = (None, [], [""], [None, 7, {}])
_DOMAIN = (("domain", b"xact"),)
_UNKNOWN_DOMAIN = (("domain", b"nowhere"),)


@dataclass(frozen=True, slots=True)
class Sender:
    """Where the links lead, and when they were signed."""

    host: FileHostAddress
    signed_at: datetime


@dataclass(frozen=True, slots=True)
class Draft:
    trace_id: str
    subtype: str
    assignment_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Sent:
    """An event that may come again."""

    event: SimulatedEvent
    draft: Draft
    files: tuple[FileLink, ...]


class Composer:
    def __init__(self, scenario: Scenario, seed: int, events: int, sender: Sender) -> None:
        self._events = events
        self._sender = sender
        self._prefix = f"{seed:x}"
        # The same seed must not tell the same story in two scenarios.
        self._random = Random(f"{scenario.name} {seed}")  # noqa: S311  a story, not a secret
        self._files = Files(
            scenario.files, self._prefix, self._random, sender.host, sender.signed_at
        )
        self._cards = Deck(cards(scenario.events), self._random)
        self._counts = Deck([1, 1, 1, 1, 1, 1, 1, 1, 2, 3], self._random)
        self._subtypes = Deck(cards(_SUBTYPES), self._random)
        self._malformed = Deck(range(MALFORMED_VARIANTS), self._random)
        self._without = Deck(_NO_ATTACHMENTS, self._random)
        self._hostile = Deck(HOSTILE_ASSIGNMENTS, self._random)
        self._strange_subtypes = Deck(HOSTILE_SUBTYPES, self._random)
        self._sent: deque[Sent] = deque(maxlen=REMEMBERED_EVENTS)
        self._specials = _placed(scenario, events)
        self._stories: dict[str, Callable[[Draft, float], SimulatedEvent]] = {
            "attachments": self._with_attachments,
            "nothing": self._with_nothing,
            "unassigned": self._unassigned,
            "malformed": self._no_event,
            "unknown_domain": self._of_nobody,
            "hostile_paths": self._with_hostile_paths,
            "repeat": self._again,
            "renewed": self._again_with_fresh_links,
            "doubled": self._with_doubled_links,
            "twins": self._with_twins,
            "crowd": self._with_a_crowd,
            "large_note": self._with_a_large_note,
            "large_file": self._with_a_large_file,
            "endless_file": self._with_an_endless_file,
        }

    def compose(self, number: int, at_seconds: float) -> SimulatedEvent:
        card = self._specials.get(number) or self._cards.deal()
        draft = Draft(
            trace_id=f"tr-{self._prefix}-{number:06d}",
            subtype=self._subtypes.deal(),
            assignment_id=f"A-{1000 + number // 4}",
            at=self._sender.signed_at + timedelta(seconds=at_seconds),
        )
        return self._stories[card](draft, at_seconds)

    def _with_attachments(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        dealt = [self._files.deal() for _ in range(self._counts.deal())]
        return self._send(draft, at_seconds, dealt)

    def _with_nothing(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        links = self._without.deal()
        more = {} if links is None else {"attachments": links}
        truth = Truth("nothing_to_do", draft.trace_id)
        return self._remember(self._event(draft, at_seconds, more, truth), draft, ())

    def _unassigned(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        assignment_id = self._random.choice((None, ""))
        urls = [self._files.small().truth.url]
        more = {"attachments": urls, "assignmentId": assignment_id}
        return self._event(draft, at_seconds, more, Truth("nothing_to_do", draft.trace_id))

    def _no_event(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        good = self._body(draft, {"attachments": [self._files.small().truth.url]})
        value, has_id = not_an_event(self._malformed.deal(), draft.trace_id, good)
        truth = Truth("malformed", draft.trace_id if has_id else "")
        return SimulatedEvent(at_seconds, draft.trace_id.encode(), value, _DOMAIN, truth)

    def _of_nobody(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        value = json.dumps(self._body(draft, {})).encode()
        truth = Truth("malformed", draft.trace_id)
        return SimulatedEvent(at_seconds, draft.trace_id.encode(), value, _UNKNOWN_DOMAIN, truth)

    def _with_hostile_paths(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        hostile = Draft(
            trace_id=f"{draft.trace_id}/../../tr {chr(92)}x",
            subtype=self._strange_subtypes.deal(),
            assignment_id=self._hostile.deal(),
            at=draft.at,
        )
        return self._send(hostile, at_seconds, list(self._files.twins()))

    def _again(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        if not self._sent:
            return self._with_attachments(draft, at_seconds)
        earlier = self._random.choice(self._sent).event
        truth = Truth("repeat", earlier.truth.trace_id)
        return SimulatedEvent(at_seconds, earlier.key, earlier.value, earlier.headers, truth)

    def _again_with_fresh_links(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        with_files = [sent for sent in self._sent if sent.files]
        if not with_files:
            return self._with_attachments(draft, at_seconds)
        earlier = self._random.choice(with_files)
        fresh = [self._files.renewed(file) for file in earlier.files]
        return self._send(earlier.draft, at_seconds, fresh, renewed=True)

    def _with_doubled_links(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        dealt = [self._files.deal(), self._files.deal()]
        urls = [one.truth.url for one in (*dealt, *reversed(dealt), dealt[0])]
        truth = Truth("attachments", draft.trace_id, tuple(_distinct(dealt)))
        return self._event(draft, at_seconds, {"attachments": urls}, truth)

    def _with_twins(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        return self._send(draft, at_seconds, list(self._files.twins()))

    def _with_a_crowd(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        crowd = [self._files.small() for _ in range(min(CROWD_MOST, 2 * self._events))]
        truth = Truth("attachments", draft.trace_id, tuple(_distinct(crowd)))
        urls = [one.truth.url for one in crowd]
        return self._event(draft, at_seconds, {"attachments": urls}, truth)

    def _with_a_large_note(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        one = self._files.small().truth
        more = {"attachments": [one.url], "note": "very long " * (LARGE_NOTE_CHARACTERS // 10)}
        truth = Truth("attachments", draft.trace_id, (one,))
        return self._event(draft, at_seconds, more, truth)

    def _with_a_large_file(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        large = self._files.sized(Behaviour("ok"), LARGE_FILE_BYTES)
        return self._send(draft, at_seconds, [large])

    def _with_an_endless_file(self, draft: Draft, at_seconds: float) -> SimulatedEvent:
        return self._send(draft, at_seconds, [self._files.sized(Behaviour("endless"), 1_000)])

    def _send(
        self, draft: Draft, at_seconds: float, dealt: list[Attachment], *, renewed: bool = False
    ) -> SimulatedEvent:
        urls = [one.truth.url for one in dealt]
        truth = Truth("attachments", draft.trace_id, tuple(_distinct(dealt)), renewed)
        event = self._event(draft, at_seconds, {"attachments": urls}, truth)
        return self._remember(event, draft, tuple(_renewable(dealt)))

    def _event(
        self, draft: Draft, at_seconds: float, more: dict[str, Any], truth: Truth
    ) -> SimulatedEvent:
        body = self._body(draft, more)
        if self._random.random() < 0.05:
            body["data"] = json.dumps(body["data"])
        key = draft.trace_id.encode()
        return SimulatedEvent(at_seconds, key, json.dumps(body).encode(), _DOMAIN, truth)

    def _body(self, draft: Draft, more: dict[str, Any]) -> dict[str, Any]:
        data = {"assignmentId": draft.assignment_id, **claim_data(self._random, draft.at.second)}
        if draft.subtype == "estimatePackageReceived" and self._random.random() < 0.8:
            data["estimateVersion"] = str(self._random.randrange(1, 5))
        return {
            "type": _TYPE_PREFIX + draft.subtype,
            "version": self._random.choice((1, 1, 1, "2")),
            "utcDateTime": draft.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "traceId": draft.trace_id,
            "data": data | more,
        }

    def _remember(
        self, event: SimulatedEvent, draft: Draft, files: tuple[FileLink, ...]
    ) -> SimulatedEvent:
        if len(event.value) < 100_000:
            self._sent.append(Sent(event, draft, files))
        return event


def _renewable(dealt: list[Attachment]) -> Iterator[FileLink]:
    for one in dealt:
        file = one.file
        if file and file.behaviour.name == "ok" and file.size < LARGE_FILE_BYTES:
            yield file


def _distinct(dealt: list[Attachment]) -> list[Any]:
    """A link that comes twice in one event is one attachment."""
    return list({one.truth.url: one.truth for one in dealt}.values())


def _placed(scenario: Scenario, events: int) -> dict[int, str]:
    """Once in a script, evenly spread; a short script has none."""
    if events < 50:
        return {}
    step = events // (len(scenario.once) + 1)
    return {step * place: name for place, name in enumerate(scenario.once, start=1)}
