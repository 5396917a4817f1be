"""Where the records of a stage come from and may go: names, decided once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forebay.core.durations import written
from forebay.engine.stages import RecordStage, SinkStage

SCHEDULER = "retry-scheduler"
LEDGER = "dlq-handler"
AGAIN = ".again"


@dataclass(frozen=True, slots=True)
class Tier:
    topic: str
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class Route:
    """`re_entries`: for each input, the topic on which its records come back."""

    pipeline: str
    stage: str
    group: str
    inputs: tuple[str, ...]
    re_entries: Mapping[str, str]
    tiers: tuple[Tier, ...]
    dead_letters: str | Path

    @property
    def worker(self) -> str:
        return f"{self.pipeline}-{self.stage}"

    @property
    def reads(self) -> tuple[str, ...]:
        """Inputs first, then what only comes back."""
        return tuple(dict.fromkeys((*self.inputs, *self.re_entries.values())))

    @property
    def dead_letter_topic(self) -> str | None:
        return self.dead_letters if isinstance(self.dead_letters, str) else None

    @property
    def derived_topics(self) -> tuple[str, ...]:
        """Topics that exist for this stage alone."""
        again = [topic for topic in self.re_entries.values() if topic not in self.inputs]
        letters = [self.dead_letter_topic] if self.dead_letter_topic else []
        return (*again, *(tier.topic for tier in self.tiers), *letters)

    def re_entry(self, origin_topic: str) -> str:
        """A record whose input is no longer read comes back on the first one's."""
        return self.re_entries.get(origin_topic) or next(iter(self.re_entries.values()))


def record_route(
    pipeline: str, prefix: str, stage: RecordStage, *, owns_alone: frozenset[str]
) -> Route:
    """`owns_alone`: topics of the pipeline that only one of its groups reads."""
    group = stage.group or f"{prefix}-{stage.name}"
    stem = stage.retry_topics or f"{group}.retry"
    tiers = tuple(Tier(f"{stem}.{written(delay)}", delay) for delay in stage.retry.delays_seconds)
    letters = stage.dead_letters or f"{group}.dlq"
    comes_back = bool(tiers) or isinstance(letters, str)
    re_entries = {
        topic: topic if topic in owns_alone else f"{group}.{topic}{AGAIN}"
        for topic in (stage.topics if comes_back else ())
    }
    return Route(pipeline, stage.name, group, stage.topics, re_entries, tiers, letters)


def sink_route(pipeline: str, prefix: str, stage: SinkStage) -> Route:
    """Rows are not retried one by one; what cannot become a row is dead-lettered."""
    group = f"{prefix}-{stage.name}"
    letters = stage.dead_letters or f"{group}.dlq"
    return Route(pipeline, stage.name, group, stage.topics, {}, (), letters)
