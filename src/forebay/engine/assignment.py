"""Partitions come with a place to start, and are not read before it is durable."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from forebay.broker.port import Consumer
from forebay.core.commit_notes import CommitNote
from forebay.core.errors import ForebayError
from forebay.core.records import UNSET, CommittedOffset, Offset, TopicPartition
from forebay.engine.commits import Commits
from forebay.engine.held import HeldPartitions
from forebay.engine.starts import note_of
from forebay.engine.work import HeldPartition

_NOTHING = CommittedOffset(UNSET)


class Begins(Protocol):
    def of(self, at: TopicPartition) -> tuple[Offset, CommitNote]:
        """Where a partition begins that the group never committed. May ask the broker."""
        ...


class Assignment:
    """Belongs to the engine thread. `waiting` have not been started yet.

    `leaves` is told of a partition before it is dropped.
    """

    def __init__(
        self,
        consumer: Consumer,
        commits: Commits,
        starts: Begins,
        held: HeldPartitions,
        leaves: Callable[[HeldPartition], object],
    ) -> None:
        self._consumer = consumer
        self._commits = commits
        self._starts = starts
        self._held = held
        self._leaves = leaves
        self.waiting: dict[TopicPartition, CommittedOffset | None] = {}

    def add(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self.waiting.update(committed)

    def start(self, now: float) -> None:
        """Asks the broker where that is needed. What raises is started by a later call.

        What was delivered of such a partition meanwhile is not held, and comes again: it is sought.
        """
        problems = [problem for at in list(self.waiting) if (problem := self._start_one(at, now))]
        if problems:
            raise problems[0]

    def _start_one(self, at: TopicPartition, now: float) -> ForebayError | None:
        try:
            found = self.waiting[at] or self._begin(at)
        except ForebayError as problem:
            return problem
        self._leave(at)
        self._held.add(at, found.offset, now)
        self._commits.adopt(at, found, note_of(found))
        del self.waiting[at]
        return None

    def move(self, at: TopicPartition, offset: Offset, now: float) -> None:
        """Go on elsewhere; what was committed stays told until the next commit.

        Going back means another topic of that name: what was committed of the old one is gone.
        """
        stored, note = self._commits.stored(at), self._commits.notes.get(at)
        self.drop([at])
        self._consumer.seek(at, offset)
        self._consumer.resume([at])
        self._held.add(at, offset, now)
        if stored is not None and note is not None:
            is_another_topic = offset < stored.offset
            self._commits.adopt(at, _NOTHING if is_another_topic else stored, note)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        for at in partitions:
            self.waiting.pop(at, None)
            self._commits.forget(at)
            self._leave(at)

    def _leave(self, at: TopicPartition) -> None:
        if at in self._held:
            self._leaves(self._held[at])
            self._held.fence(at)

    def _begin(self, at: TopicPartition) -> CommittedOffset:
        """Where a group begins is committed before its first record is delivered."""
        offset, note = self._starts.of(at)
        self._consumer.seek(at, offset)
        begun = CommittedOffset(offset, note.written())
        self._consumer.commit({at: begun})
        return begun
