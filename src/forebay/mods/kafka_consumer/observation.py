"""What is looked at while the consumer runs: a full queue, gaps, dev mode, stuck workers."""

from dataclasses import dataclass, field

from forebay.core.records import Offset
from forebay.engine.health import PartitionHealth, StageHealth
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.telling import Teller


@dataclass(slots=True)
class Observer:
    """Looks at what the stage says of itself. `now` is monotonic."""

    configuration: Configuration
    tell: Teller
    full_since: float | None = None
    backpressure_told: int = 0
    looked_at: float | None = None
    waits_at: dict[tuple[str, int], Offset] = field(default_factory=dict)
    handled: int = 0
    stuck: int = 0
    stuck_max: int = 0

    def look(self, health: StageHealth, now: float) -> None:
        self._look_at_queue(health, now)
        self._look_at_workers(health)
        interval = self.configuration.commit_interval_seconds
        if self.looked_at is None:
            self.looked_at = now
        elif now - self.looked_at >= interval:
            self.looked_at = now
            self._look_for_gaps(health)
            if self.configuration.dev_mode:
                self._tell_uncommitted(health)

    def _look_at_queue(self, health: StageHealth, now: float) -> None:
        if health.unresolved < self.configuration.window or health.is_stopping:
            self.full_since = None
            return
        if self.full_since is None:
            self.full_since = now
        if now - self.full_since >= self.configuration.queue_put_timeout:
            self.tell(
                "mod.backpressure",
                queue_size=queue_depth(health),
                queue_capacity=self.configuration.queue_size,
                full_seconds=round(now - self.full_since, 3),
            )
            self.backpressure_told += 1
            self.full_since = now

    def _look_at_workers(self, health: StageHealth) -> None:
        if health.stuck > self.stuck:
            workers = self.configuration.worker_count
            self.tell("mod.workers_stuck", stuck=health.stuck, worker_count=workers)
        self.stuck = health.stuck
        self.stuck_max = max(self.stuck_max, health.stuck)

    def _look_for_gaps(self, health: StageHealth) -> None:
        """One that is still there after a whole interval: shorter ones are how workers work."""
        waits_at: dict[tuple[str, int], Offset] = {}
        for partition in health.partitions:
            done_above = partition.span - partition.unresolved
            if done_above <= 0:
                continue
            place = (partition.topic, partition.partition)
            waits_at[place] = partition.watermark
            if self.waits_at.get(place) == partition.watermark:
                self._tell_gap(partition, done_above)
        self.waits_at = waits_at

    def _tell_gap(self, partition: PartitionHealth, done_above: int) -> None:
        self.tell(
            "mod.gap",
            topic=partition.topic,
            partition=partition.partition,
            committed_offset=partition.watermark,
            gap_at=partition.watermark,
            uncommitted_count=done_above,
        )

    def _tell_uncommitted(self, health: StageHealth) -> None:
        handled = handled_of(health)
        if handled > self.handled:
            self.tell(
                "mod.dev_mode_would_have_committed",
                partition_offsets=watermarks_of(health),
                messages_processed=handled - self.handled,
            )
        self.handled = handled


def queue_depth(health: StageHealth) -> int:
    return max(0, health.unresolved - health.running)


def handled_of(health: StageHealth) -> int:
    return int(str(health.counters["handled"]))


def watermarks_of(health: StageHealth) -> dict[str, Offset]:
    return {f"{place.topic}:{place.partition}": place.watermark for place in health.partitions}
