"""What a run did, in one line for people and one object for machines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from forebay.engine.health import StageHealth
from forebay.engine.routes import AGAIN


@dataclass(frozen=True, slots=True)
class Receipt:
    """`waiting`: retries on their way back, as far as this run has seen them."""

    handled: int
    retried: int
    dead_lettered: int
    skipped: int
    emitted: int
    committed: dict[str, int]
    waiting: int
    next_due_ms: int | None
    seconds: float
    left_behind: int = 0
    expired: int = 0
    stages: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        return 1 if self.left_behind else 0

    def as_object(self) -> dict[str, object]:
        due = None
        if self.next_due_ms is not None:
            due = datetime.fromtimestamp(self.next_due_ms / 1000, UTC).isoformat()
        return {
            "handled": self.handled,
            "retried": self.retried,
            "dead_lettered": self.dead_lettered,
            "skipped": self.skipped,
            "emitted": self.emitted,
            "committed": self.committed,
            "waiting": self.waiting,
            "next_due": due,
            "seconds": round(self.seconds, 3),
            "left_behind": self.left_behind,
            "expired": self.expired,
            "exit": self.exit_code,
            "stages": self.stages,
        }

    def sentence(self, now_ms: int) -> str:
        parts = [f"{self.handled:,} handled"]
        if self.waiting:
            parts.append(f"{self.waiting:,} retrying{self._next(now_ms)}")
        if self.dead_lettered:
            parts.append(f"{self.dead_lettered:,} dead letters")
        if self.skipped:
            parts.append(f"{self.skipped:,} skipped")
        if self.committed:
            parts.append(f"resumes at {_places(self.committed)}")
        if self.left_behind:
            parts.append(
                f"{self.left_behind} were still running at the deadline and will be handled again"
            )
        if self.expired:
            parts.append(f"{self.expired:,} expired before they were read, all else kept")
        else:
            parts.append("nothing lost")
        return " · ".join(parts)

    def _next(self, now_ms: int) -> str:
        if self.next_due_ms is None:
            return ""
        return f" (next in {max(1, round((self.next_due_ms - now_ms) / 1000))} s)"


def receipt_of(healths: Sequence[StageHealth], seconds: float, left_behind: int) -> Receipt:
    """Counts are of record stages; sinks and the scheduler tell theirs under `stages`."""
    records = [health for health in healths if health.kind == "record"]
    sinks = [health for health in healths if health.kind == "sink"]
    counted = records or sinks
    schedulers = [health for health in healths if health.kind == "scheduler"]
    due = [health.next_due_ms for health in schedulers if health.next_due_ms is not None]
    return Receipt(
        handled=_sum(counted, "handled"),
        retried=_sum(counted, "retried"),
        dead_lettered=_sum(counted, "dead_lettered"),
        skipped=_sum(counted, "skipped"),
        emitted=_sum(counted, "emitted"),
        committed=_committed(counted),
        waiting=sum(health.unresolved for health in schedulers),
        next_due_ms=min(due, default=None),
        seconds=seconds,
        left_behind=left_behind,
        expired=_sum(healths, "expired"),
        stages=_by_stage(healths),
    )


def _committed(healths: Sequence[StageHealth]) -> dict[str, int]:
    """A partition may have been here and there; its last owner was the furthest."""
    committed: dict[str, int] = {}
    for health in healths:
        for place in health.partitions:
            name = f"{place.topic}:{place.partition}"
            committed[name] = max(place.watermark, committed.get(name, 0))
    return committed


def _sum(healths: Sequence[StageHealth], name: str) -> int:
    return sum(int(str(health.counters[name])) for health in healths)


def _places(committed: dict[str, int]) -> str:
    """orders[0..3] = 3,120 3,044 3,101 3,066"""
    topics: dict[str, list[tuple[int, int]]] = {}
    for place, offset in committed.items():
        topic, _, partition = place.rpartition(":")
        topics.setdefault(topic, []).append((int(partition), offset))
    told = []
    for topic, places in topics.items():
        if topic.endswith(AGAIN) and not any(offset for _, offset in places):
            continue  # nothing ever came back
        places.sort()
        numbers = [number for number, _ in places]
        first, last = numbers[0], numbers[-1]
        is_range = len(numbers) > 1 and numbers == list(range(first, last + 1))
        shown = f"{first}..{last}" if is_range else ",".join(str(number) for number in numbers)
        told.append(f"{topic}[{shown}] = {' '.join(f'{offset:,}' for _, offset in places)}")
    return ", ".join(told)


def _by_stage(healths: Sequence[StageHealth]) -> dict[str, dict[str, float]]:
    stages: dict[str, dict[str, float]] = {}
    for health in healths:
        told = stages.setdefault(health.stage, {})
        for name, count in health.counters.items():
            if isinstance(count, int | float):
                told[name] = told.get(name, 0) + count
    return stages
