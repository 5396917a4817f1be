"""Which partitions wait: derived from what is, each time, and only then compared."""

from forebay.broker.port import Consumer
from forebay.core.backpressure import STALLED_SECONDS, Bounds
from forebay.core.records import TopicPartition
from forebay.engine.held import HeldPartitions
from forebay.engine.work import HeldPartition


class Pauses:
    """Belongs to the engine thread."""

    def __init__(self, consumer: Consumer, bounds: Bounds, held: HeldPartitions) -> None:
        self._consumer = consumer
        self._bounds = bounds
        self._held = held
        self._full_since: float | None = None

    def converge(self, now: float, *, is_stopping: bool) -> None:
        everything = self._is_full_for_long(now) or is_stopping
        share = self._bounds.share(len(self._held))
        pause: list[TopicPartition] = []
        resume: list[TopicPartition] = []
        for held in self._held:
            wanted = everything or held.is_at_stop or self._must_pause(held, share, now)
            if wanted != held.is_paused:
                (pause if wanted else resume).append(held.at)
                held.is_paused = wanted
        if pause:
            self._consumer.pause(pause)
        if resume:
            self._consumer.resume(resume)

    def room(self) -> int:
        return self._bounds.room(self._held.records, self._held.bytes)

    def _is_full_for_long(self, now: float) -> bool:
        if self.room() > 0:
            self._full_since = None
            return False
        if self._full_since is None:
            self._full_since = now
        return now - self._full_since >= STALLED_SECONDS

    def _must_pause(self, held: HeldPartition, share: int, now: float) -> bool:
        span, unresolved = held.progress.span, held.progress.unresolved
        if held.is_paused:
            return not self._bounds.may_resume(span=span, unresolved=unresolved, share=share)
        still_seconds = now - held.moved_at
        return self._bounds.must_pause(
            span=span, unresolved=unresolved, share=share, still_seconds=still_seconds
        )
