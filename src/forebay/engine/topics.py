"""The topics of a pipeline: which it owns, which are others', and whether they are there."""

from collections.abc import Sequence
from dataclasses import dataclass

from forebay.broker.port import Admin
from forebay.core.errors import UnknownTopic
from forebay.core.topics import TopicSpec
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import MONTH_MS, WEEK_MS, RecordStage, Topic

TIER_PARTITIONS = 2
LETTER_PARTITIONS = 1
INPUT_PARTITIONS = 4
DELAYS_KEPT = 100  # a retry must be there when it is due, and long after if nobody runs


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """`owned` are created by `run`, `foreign` only where somebody said so."""

    owned: tuple[Topic, ...]
    foreign: tuple[Topic, ...]


def plan_topics(pipeline: Pipeline) -> TopicPlan:
    owned = dict(pipeline.topics)
    foreign: dict[str, Topic] = {}
    for stage in pipeline.stages:
        emitted = stage.emits if isinstance(stage, RecordStage) else ()
        for name in (*stage.topics, *emitted):
            if name not in owned:
                foreign[name] = Topic(name, INPUT_PARTITIONS, WEEK_MS)
    for route in pipeline.routes:
        for topic, again in route.re_entries.items():
            source = owned.get(topic) or foreign[topic]
            owned.setdefault(again, Topic(again, source.partitions))
        for tier in route.tiers:
            kept_ms = max(WEEK_MS, round(tier.delay_seconds * 1000) * DELAYS_KEPT)
            owned.setdefault(tier.topic, Topic(tier.topic, TIER_PARTITIONS, kept_ms))
        letters = route.dead_letter_topic
        if letters is not None:
            owned.setdefault(letters, Topic(letters, LETTER_PARTITIONS, MONTH_MS))
    return TopicPlan(tuple(owned.values()), tuple(foreign.values()))


def create_topics(admin: Admin, plan: TopicPlan, *, foreign_too: bool) -> list[str]:
    """Creates what is missing and may be created; gives their names. Idempotent.

    Raises UnknownTopic for others' topics that are missing.
    """
    there = {topic.name for topic in admin.describe_topics()}
    missing = [topic for topic in plan.foreign if topic.name not in there]
    if missing and not foreign_too:
        raise UnknownTopic(_missing(missing))
    wanted = [topic for topic in (*plan.foreign, *plan.owned) if topic.name not in there]
    for topic in wanted:
        spec = TopicSpec(topic.name, topic.partitions, topic.retention_ms)
        admin.create_topic(spec, exists_ok=True)
    return [topic.name for topic in wanted]


def _missing(topics: Sequence[Topic]) -> str:
    names = ", ".join(topic.name for topic in topics)
    return (
        f"There is no topic {names}, which the pipeline reads or writes and does not own. Nothing "
        f"was started. Create it, or run with --create-topics."
    )
