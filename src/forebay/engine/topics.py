"""The topics of a pipeline: which it owns, which are others', and whether they are there."""

from collections.abc import Sequence
from dataclasses import dataclass

from forebay.broker.port import Admin
from forebay.core.errors import AccessDenied, UnknownTopic, Unusable
from forebay.core.topics import TopicSpec
from forebay.engine.idle import committed_of
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
            kept_ms = _kept_ms(tier.delay_seconds)
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


def check_tiers(admin: Admin, pipeline: Pipeline) -> None:
    """Raises Unusable where retries could be lost, or brought back twice. Blocking."""
    delays = {tier.topic: tier.delay_seconds for route in pipeline.routes for tier in route.tiers}
    if not delays:
        return
    for topic in admin.describe_topics(delays):
        wanted_ms = _kept_ms(delays[topic.name])
        if topic.retention_ms is not None and 0 <= topic.retention_ms < wanted_ms:
            raise Unusable(
                f"Topic {topic.name} keeps its records for {topic.retention_ms / 1000:g} s, and "
                f"retries wait in it. Nothing was started. Set its retention to "
                f"{wanted_ms / 1000:g} s or more."
            )
    for group in _groups(admin):
        read = _committed_of(admin, group) & delays.keys()
        if group != pipeline.scheduler_group and read:
            raise Unusable(
                f"Group {group} has read {min(read)}, which only {pipeline.scheduler_group} may: "
                f"each would bring every retry back. Nothing was started. Give one of the "
                f"pipelines another group prefix, or delete that group."
            )


def _kept_ms(delay_seconds: float) -> int:
    return max(WEEK_MS, round(delay_seconds * 1000) * DELAYS_KEPT)


def _groups(admin: Admin) -> list[str]:
    """None where groups may not be listed."""
    try:
        return [group.name for group in admin.list_groups()]
    except AccessDenied:
        return []


def _committed_of(admin: Admin, group: str) -> set[str]:
    try:
        return {at.topic for at in committed_of(admin, group)}
    except AccessDenied:
        return set()


def _missing(topics: Sequence[Topic]) -> str:
    names = ", ".join(topic.name for topic in topics)
    return (
        f"There is no topic {names}, which the pipeline reads or writes and does not own. Nothing "
        f"was started. Create it, or run with --create-topics."
    )
