"""How a loop gets its records: joins, is assigned, polls, and holds on while a broker is away."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial

from forebay.core.errors import ForebayError, NoCommittedOffset, OffsetOutOfRange
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.engine.assignment import Assignment, Begins
from forebay.engine.commits import Commits
from forebay.engine.counters import Counters
from forebay.engine.doors import Doors, ExpiredRange
from forebay.engine.held import HeldPartitions
from forebay.engine.work import HeldPartition
from forebay.observability.catalogue import EventName

TROUBLE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, for people."""

    pipeline: str
    stage: str
    group: str


@dataclass(frozen=True, slots=True)
class Manners:
    """How a loop wants its partitions. `leaves` is told of one before it is dropped.

    `passes_gaps`: what retention deleted is told and passed by; else the partition begins again.
    `may_start`: False while a new partition has to wait.
    """

    leaves: Callable[[HeldPartition], object]
    passes_gaps: bool = True
    may_start: Callable[[], bool] = lambda: True


class Intake:
    """Belongs to the loop's thread."""

    def __init__(
        self,
        reader: Reader,
        doors: Doors,
        counters: Counters,
        commits: Commits,
        starts: Begins,
        *,
        manners: Manners,
    ) -> None:
        self.held = HeldPartitions()
        self.trouble = ""
        self.polled_at = doors.clock.monotonic()
        self._reader = reader
        self._doors = doors
        self._counters = counters
        self._consumer = doors.consumer
        self._assignment = Assignment(doors.consumer, commits, starts, self.held, manners.leaves)
        self._manners = manners
        self._outside: dict[TopicPartition, OffsetOutOfRange] = {}
        self._wait_until = 0.0
        self._start_again_at = 0.0
        self._now = self.polled_at

    @property
    def is_starting(self) -> bool:
        """Some partition has no place to go on from yet."""
        return bool(self._assignment.waiting or self._outside)

    def is_waiting(self, now: float) -> bool:
        """The broker did not answer; it is not asked again before a moment has passed."""
        return now < self._wait_until

    def assigned(
        self, committed: Mapping[TopicPartition, CommittedOffset | None], now: float
    ) -> None:
        """One that was never taken away may come again: its topic was made anew meanwhile."""
        self._now = now
        self.drop(committed)
        self._assignment.add(committed)
        self._start()

    def begin_again(self, partitions: Collection[TopicPartition], now: float) -> None:
        """As if they were assigned now."""
        self._consumer.resume(partitions)
        self.assigned(dict.fromkeys(partitions), now)

    def start_what_waits(self, now: float) -> None:
        self._now = now
        if self.is_starting and now >= self._start_again_at:
            self._start()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        self._assignment.drop(partitions)
        for at in partitions:
            self._outside.pop(at, None)

    def poll(self, seconds: float, records_max: int, now: float) -> list[Record]:
        self.start_what_waits(now)
        if self.is_waiting(now):
            return []
        self.polled_at = now
        try:
            records = self._consumer.poll(seconds, records_max)
        except OffsetOutOfRange as error:
            self._fell_outside(error)
        except NoCommittedOffset:
            self._wait_until = now + TROUBLE_SECONDS
        except ForebayError as error:
            self._has_trouble(error)
        else:
            if not self.is_starting:
                self.trouble = ""
            return records
        return []

    def say(self, event: EventName, **fields: object) -> None:
        named = {"stage": self._reader.stage, "pipeline": self._reader.pipeline}
        self._doors.emit(event, **(named | fields))

    def _start(self) -> None:
        if not self._manners.may_start():
            return
        for error in list(self._outside.values()):
            self._try_to(partial(self._go_on_at_the_beginning, error))
        self._try_to(partial(self._assignment.start, self._now))

    def _try_to(self, begin: Callable[[], object]) -> None:
        try:
            begin()
        except ForebayError as error:
            self._start_again_at = self._now + TROUBLE_SECONDS
            self._tell(error)

    def _has_trouble(self, error: ForebayError) -> None:
        self._wait_until = self._now + TROUBLE_SECONDS
        self._tell(error)

    def _tell(self, error: ForebayError) -> None:
        if not self.trouble:
            self.say("stage.held", reason=str(error))
        self.trouble = str(error)

    def _fell_outside(self, error: OffsetOutOfRange) -> None:
        """A partition that has not been started is sought when it is.

        Where gaps are not passed, what was read is kept: the log has it no more.
        """
        at = error.partition
        if at in self._assignment.waiting:
            return
        if self._manners.passes_gaps:
            self._outside[at] = error
        else:
            self._assignment.add({at: None})
        self._start()

    def _go_on_at_the_beginning(self, error: OffsetOutOfRange) -> None:
        """Retention passed us by, or the topic is another: what is gone is told, never hidden.

        Where it cannot be written down, the partition waits.
        """
        at, gone = error.partition, max(0, error.low - error.offset)
        self._doors.expired(ExpiredRange(self._reader.group, at, error.offset, error.low))
        del self._outside[at]
        self._counters.expired += gone
        self.say(
            "partition.expired",
            consumer_group=self._reader.group,
            topic=at.topic,
            partition=at.partition,
            from_offset=error.offset,
            to_offset=error.low,
            records=gone,
        )
        if at in self.held and self.held[at].progress.position <= error.low:
            self.held[at].progress.reach(error.low)
            self._consumer.seek(at, error.low)
            return
        self._assignment.move(at, error.low, self._now)
