"""The loop's side of single file: it hands out the heads of suspect partitions, one at a time."""

from collections import deque
from collections.abc import Callable

from forebay.broker.port import Consumer
from forebay.core.failures import KILLER, Failure
from forebay.engine.commits import Commits
from forebay.engine.dispatch import Dispatch
from forebay.engine.held import HeldPartitions
from forebay.engine.single_file import Named, Place, SingleFile
from forebay.engine.work import HeldPartition, Result, Work


class OneByOne:
    """Belongs to the engine thread. Work of other partitions waits until single file is over."""

    def __init__(
        self,
        single_file: SingleFile,
        group: str,
        consumer: Consumer,
        commits: Commits,
        dispatch: Dispatch,
        *,
        settle: Callable[[Work, Result], None],
    ) -> None:
        self._single_file = single_file
        self._group = group
        self._consumer = consumer
        self._commits = commits
        self._dispatch = dispatch
        self._settle = settle
        self._parked: deque[Work] = deque()
        self._alone: Work | None = None

    def park(self, work: Work) -> None:
        self._parked.append(work)

    def step(self, held: HeldPartitions, now: float) -> bool:
        """False when single file is over and the parked work was given to the lanes."""
        if self._alone is not None and not self._is_done(self._alone):
            return True
        self._look(held, now)
        if self._single_file.is_over:
            self._release()
            return False
        for partition in self._suspects(held):
            if self._start(partition):
                break
        return True

    def _is_done(self, work: Work) -> bool:
        """Its outcome is committed before the next one starts."""
        partition = work.held
        if not partition.is_fenced and partition.progress.watermark <= work.record.offset:
            return False
        if not partition.is_fenced:
            self._commits.commit_now([partition])
        self._alone = None
        self._single_file.give_turn_back()
        return True

    def _look(self, held: HeldPartitions, now: float) -> None:
        for partition in held:
            progress = partition.progress
            place = self._place(partition)
            self._single_file.reached(place, progress.watermark, now)
            if not progress.unresolved and self._consumer.at_end(partition.at):
                self._single_file.reached_the_end(place)
        places = {self._place(partition) for partition in held}
        self._single_file.drop_what_is_elsewhere(places, self._group, now)

    def _suspects(self, held: HeldPartitions) -> list[HeldPartition]:
        """The longest behind first, so that all have their turn."""
        suspects = [
            partition
            for partition in held
            if partition.progress.head and self._single_file.is_suspect(self._place(partition))
        ]
        return sorted(suspects, key=lambda partition: partition.moved_at)

    def _start(self, partition: HeldPartition) -> bool:
        work = partition.progress.head
        if work is None:
            return False
        named = Named(self._place(partition), work.record.offset)
        if not self._single_file.take_turn(named):
            return True
        self._alone = work
        if self._single_file.is_killer(named):
            reason = "The process died twice while this record was handled alone."
            self._settle(work, Failure(KILLER, reason))
        else:
            self._dispatch.hand_out_alone(work)
        return True

    def _release(self) -> None:
        while self._parked:
            work = self._parked.popleft()
            progress = work.held.progress
            if not work.held.is_fenced and progress.is_unresolved(work.record.offset):
                self._dispatch.take(work)

    def _place(self, partition: HeldPartition) -> Place:
        return Place(self._group, *partition.at)
