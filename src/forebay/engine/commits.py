"""Commits of watermarks: on cadence without waiting, at once where a partition leaves."""

from collections.abc import Callable, Iterable, Mapping

from forebay.broker.port import Consumer
from forebay.core.commit_notes import CommitNote
from forebay.core.errors import CommitFailed, Fenced, ForebayError
from forebay.core.records import CommittedOffset, TopicPartition
from forebay.engine.counters import Counters
from forebay.engine.work import HeldPartition

RE_ENTRY_SECONDS = 0.2


def _nothing_before() -> None:
    pass


class Commits:
    """Belongs to the engine thread. Clean is only what the broker said that it stored.

    `before` is called ahead of each round of commits.
    """

    def __init__(
        self,
        consumer: Consumer,
        counters: Counters,
        every_seconds: float,
        *,
        tells_above: bool,
        before: Callable[[], None] = _nothing_before,
    ) -> None:
        self._before = before
        self._consumer = consumer
        self._counters = counters
        self._tells_above = tells_above
        self._every_seconds = min(every_seconds, RE_ENTRY_SECONDS) if tells_above else every_seconds
        self._last_at = 0.0
        self._stored: dict[TopicPartition, CommittedOffset] = {}
        self._asked: dict[TopicPartition, CommittedOffset] = {}
        self.notes: dict[TopicPartition, CommitNote] = {}
        self.trouble = ""

    def adopt(self, at: TopicPartition, stored: CommittedOffset, note: CommitNote) -> None:
        """What the broker has of a partition that was just assigned."""
        self._stored[at] = stored
        self._asked.pop(at, None)
        self.notes[at] = note

    def forget(self, at: TopicPartition) -> None:
        for kept in (self._stored, self._asked, self.notes):
            kept.pop(at, None)

    def start_if_due(self, held: Iterable[HeldPartition], now: float, *, hurry: bool) -> None:
        if not hurry and now - self._last_at < self._every_seconds:
            return
        self._last_at = now
        self._before()
        dirty = self._dirty(held)
        if not dirty:
            self.trouble = self.trouble if self._asked else ""
            return
        self._asked.update(dirty)
        try:
            self._consumer.start_commit(dirty)
        except ForebayError as error:
            self._failed(dict.fromkeys(dirty, error))

    def is_older_than(self, seconds: float, now: float) -> bool:
        return now - self._last_at >= seconds

    def take_answers(self) -> None:
        for result in self._consumer.finished_commits():
            for at, offset in result.offsets.items():
                if at not in result.failures and at in self._asked:
                    self._stored[at] = offset
                    self._counters.commits += 1
                    self.trouble = ""
                self._asked.pop(at, None)
            if result.failures:
                self._failed(result.failures)

    def commit_now(self, held: Iterable[HeldPartition]) -> None:
        """Blocking. What fails is told and left: its records are read again elsewhere."""
        self._before()
        dirty = self._dirty(held, even_asked=True)
        if not dirty:
            return
        try:
            self._consumer.commit(dirty)
        except CommitFailed as error:
            self._failed(error.failures)
            dirty = {at: offset for at, offset in dirty.items() if at not in error.failures}
        except ForebayError as error:
            self._failed(dict.fromkeys(dirty, error))
            return
        self._stored.update(dirty)
        self._counters.commits += len(dirty)

    def is_clean(self, held: Iterable[HeldPartition]) -> bool:
        return not self._asked and not self._dirty(held)

    def stored(self, at: TopicPartition) -> CommittedOffset | None:
        return self._stored.get(at)

    def _dirty(
        self, held: Iterable[HeldPartition], *, even_asked: bool = False
    ) -> dict[TopicPartition, CommittedOffset]:
        """Only what changed: an offset, or what is resolved above it."""
        dirty = {}
        for partition in held:
            at = partition.at
            if partition.is_fenced or (at in self._asked and not even_asked):
                continue
            wanted = self._wanted(partition)
            if wanted is not None and self._stored.get(at) != wanted:
                dirty[at] = wanted
        return dirty

    def _wanted(self, held: HeldPartition) -> CommittedOffset | None:
        progress = held.progress
        note = self.notes.get(held.at, CommitNote())
        above = progress.resolved_above if self._tells_above else 0
        watermark = progress.watermark
        stored = self._stored.get(held.at)
        if stored is None and watermark == progress.started_at and not above:
            return None
        if stored is not None and stored.offset == watermark and not self._tells_above:
            return stored
        told = CommitNote(above, note.partitions, note.since_ms)
        return CommittedOffset(watermark, told.written())

    def _failed(self, failures: Mapping[TopicPartition, ForebayError]) -> None:
        """A fenced one is about to be taken away; the others stay dirty and are tried again."""
        for at, error in failures.items():
            self._asked.pop(at, None)
            self._counters.commit_failures += 1
            if not isinstance(error, Fenced):
                self.trouble = str(error)
