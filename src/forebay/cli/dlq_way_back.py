"""Where dead letters go back to: as their pipeline says, or as the broker shows."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from forebay.cli.dlq_choice import PAGE
from forebay.engine.ledger import Ledger
from forebay.engine.letters import DeadLetter, LetterFilter
from forebay.engine.pipeline import Pipeline
from forebay.engine.replay_plans import PlanEntry
from forebay.engine.routes import Route

_LOOK_AT = 20

# How many, by dead-letter topic and topic of origin.
Origins: TypeAlias = Mapping[tuple[str, str], int]
AskTopics: TypeAlias = Callable[[], Collection[str]]
FindPipeline: TypeAlias = Callable[[str], Pipeline | None]


@dataclass(frozen=True, slots=True)
class WayBack:
    """`routes` by dead-letter topic; `targets` counts the records for each topic they go to."""

    routes: Mapping[str, Route]
    targets: Mapping[str, int]
    nowhere: int

    @property
    def count(self) -> int:
        return sum(self.targets.values())


def way_back(
    ledger: Ledger, origins: Origins, find: FindPipeline, ask_topics: AskTopics
) -> WayBack:
    """The broker is asked only where no pipeline could be."""
    routes: dict[str, Route] = {}
    for dlq_topic in dict.fromkeys(topic for topic, _ in origins):
        from_topics = {origin for topic, origin in origins if topic == dlq_topic}
        route = _route(ledger, dlq_topic, from_topics, find, ask_topics)
        if route is not None and route.re_entries:
            routes[dlq_topic] = route
    targets: Counter[str] = Counter()
    for (dlq_topic, origin), count in origins.items():
        if dlq_topic in routes:
            targets[routes[dlq_topic].re_entry(origin)] += count
    return WayBack(routes, targets, sum(origins.values()) - targets.total())


def origins_of(ledger: Ledger, entries: Iterable[PlanEntry]) -> Origins:
    """Of a plan that was made before."""
    ids = [entry.letter_id for entry in entries]
    origins: Counter[tuple[str, str]] = Counter()
    for at in range(0, len(ids), PAGE):
        some = LetterFilter(ids=tuple(ids[at : at + PAGE]))
        origins.update(
            (letter.dlq_topic, letter.origin.topic) for letter in ledger.find(some, PAGE).items
        )
    return origins


def _route(
    ledger: Ledger,
    dlq_topic: str,
    from_topics: Collection[str],
    find: FindPipeline,
    ask_topics: AskTopics,
) -> Route | None:
    letter = _one_of(ledger, dlq_topic)
    if letter is None:
        return None
    pipeline = find(letter.pipeline)
    if pipeline is None:
        return derived_route(letter, from_topics, ask_topics())
    found = [route for route in pipeline.routes if route.dead_letter_topic == dlq_topic]
    return found[0] if found else None


def _one_of(ledger: Ledger, dlq_topic: str) -> DeadLetter | None:
    """Records of somebody else on that topic know no group."""
    found = ledger.find(LetterFilter(topic=dlq_topic), _LOOK_AT).items
    own = [letter for letter in found if letter.dlq_topic == dlq_topic]
    return next((letter for letter in own if letter.group), own[0] if own else None)


def derived_route(
    letter: DeadLetter, from_topics: Collection[str], existing: Collection[str]
) -> Route | None:
    """By the group's own topics for what comes back; None where it has none.

    Without one the stage takes records back on its input, but whether others read that topic too,
    only the pipeline can tell.
    """
    back = {origin: f"{letter.group}.{origin}.again" for origin in sorted(from_topics)}
    re_entries = {origin: again for origin, again in back.items() if again in existing}
    if not letter.group or not re_entries:
        return None
    inputs = tuple(re_entries)
    return Route(
        letter.pipeline, letter.stage, letter.group, inputs, re_entries, (), letter.dlq_topic
    )
