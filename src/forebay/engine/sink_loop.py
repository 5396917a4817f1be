"""A sink stage: records in order, one durable batch after another, the position kept with it."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from traceback import format_exception
from typing import Any

from forebay.core.batches import BatchRule
from forebay.core.commit_notes import CommitNote
from forebay.core.errors import Fenced, ForebayError, RowsRefused, Unusable
from forebay.core.failures import PERMANENT, Failure, category_of, reason_of
from forebay.core.outcomes import Reject, Skip
from forebay.core.records import CommittedOffset, Offset, Record, TopicPartition
from forebay.core.sinks import Sink, SourcePartition
from forebay.engine.commits import Commits
from forebay.engine.counters import Counters
from forebay.engine.doors import Doors, LoopOptions, Wait
from forebay.engine.health import StageHealth, partitions_of
from forebay.engine.intake import Intake, Manners, Reader
from forebay.engine.payloads import Undecodable
from forebay.engine.settler import Destination, Settler
from forebay.engine.sink_writer import Flush, Flushed, SinkWriter
from forebay.engine.stops import Stops
from forebay.engine.work import HeldPartition, Work

POLL_RECORDS_MAX = 1_000
IDLE_SECONDS = 0.2
WRITER_SECONDS = 0.05
REPORT_SECONDS = 0.005
BACK_OFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
COMMIT_SECONDS = 1.0
STOPS_ON = (SystemExit, KeyboardInterrupt, MemoryError)


@dataclass(slots=True)
class Item:
    """A record's part in a batch. Without a row it moves the position alone.

    `is_buried`: it became a dead letter, which is on its way while the item `is_open`.
    """

    work: Work
    row: Any = None
    is_buried: bool = False
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """`make_row` gives a row or Skip. `leaves_undecodable`: another stage reads that topic too and
    buries what it cannot decode.
    """

    make_row: Callable[[Record], Any]
    batch: BatchRule
    destination: Destination
    leaves_undecodable: bool = False


class SinkStarts:
    """Where the sink says it is; a place that the log does not have is a person's to decide."""

    def __init__(self, doors: Doors, sink: Sink[Any]) -> None:
        self._consumer = doors.consumer
        self._admin = doors.admin
        self._sink = sink
        self.sources: dict[TopicPartition, SourcePartition] = {}
        self.positions: dict[SourcePartition, Offset | None] = {}

    def of(self, at: TopicPartition) -> tuple[Offset, CommitNote]:
        (described,) = self._admin.describe_topics([at.topic])
        source = SourcePartition(at.topic, at.partition, described.id or at.topic)
        position = self._sink.position([source]).get(source)
        low, end = self._consumer.watermarks(at)
        self.sources[at], self.positions[source] = source, position
        if position is None:
            return low, CommitNote()
        if position < low:
            raise Unusable(
                f"The sink has stored {at} up to offset {position}, but the log begins at {low}: "
                f"{low - position} records were deleted before they were stored. Nothing of it is "
                f"read until a person decides; `forebay sinks skip` lets the sink go on."
            )
        if position > end:
            raise Unusable(
                f"The sink has stored {at} up to offset {position}, but the log ends at {end}: it "
                f"is not the log that was stored. Nothing of it is read. Restore the topic, or "
                f"give the sink another name to store all again."
            )
        return position, CommitNote()


class SinkLoop:
    """Steps like the stage loop. The sink is used by the writer, and here for its position."""

    def __init__(
        self,
        plan: SinkPlan,
        sink: Sink[Any],
        writer: SinkWriter,
        doors: Doors,
        options: LoopOptions | None = None,
    ) -> None:
        self.route = plan.destination.route
        self.counters = Counters()
        self._plan = plan
        self._options = options or LoopOptions()
        self._writer = writer
        self._consumer = doors.consumer
        self._clock = doors.clock
        self._starts = SinkStarts(doors, sink)
        self._commits = Commits(doors.consumer, self.counters, COMMIT_SECONDS, tells_above=False)
        self._intake = Intake(
            Reader(self.route.pipeline, self.route.stage, self.route.group),
            doors,
            self.counters,
            self._commits,
            self._starts,
            manners=Manners(self._leave, passes_gaps=False, may_start=lambda: not self._is_writing),
        )
        self.held = self._intake.held
        self._stops = Stops(self._options, self.route.inputs, self.counters, self.held)
        self._settler = Settler(
            plan.destination, doors.producer, doors.clock, self.counters, self._buried
        )
        self._queues: dict[HeldPartition, deque[Item]] = {}
        self._burying: dict[Work, Item] = {}
        self._flushing: list[Item] = []
        self._to_flush: deque[list[Item]] = deque()
        self._first_at = 0.0
        self._failures_in_a_row = 0
        self._retry_at = 0.0
        self._brought: list[Record] = []
        self._now = doors.clock.monotonic()
        self._stop_deadline: float | None = None
        self.sink_trouble = ""
        self.stopped_by: BaseException | None = None
        self.is_over = False

    def start(self) -> None:
        if self._options.by_hand is None:
            self._consumer.subscribe(self.route.inputs, self)
            return
        self._consumer.assign(self._options.by_hand)
        for at, offset in self._options.by_hand.items():
            self._starts.sources[at] = SourcePartition(*at, at.topic)
            self.held.add(at, offset, self._now)

    def step(self, now: float) -> Wait:
        self._now = now
        self._take_in(self._poll(now))
        self._push()
        self._take_answers(now)
        self._intake.start_what_waits(now)
        self._flush_if_due(now)
        self._commit_if_due(now)
        self._pause_and_resume()
        self._end_if_done(now)
        return self._what_to_wait_for(now)

    def rest(self, wait: Wait) -> None:
        match wait.until:
            case "finished":
                self._writer.wait(wait.seconds)
            case "reports":
                self._settler.take_reports(wait.seconds, self._now)
            case "records":
                self._brought = self._intake.poll(wait.seconds, POLL_RECORDS_MAX, self._now)

    def stop(self, deadline: float) -> None:
        """What has been read is stored, then the position is committed."""
        self._stop_deadline = min(deadline, self._stop_deadline or deadline)

    @property
    def is_stopping(self) -> bool:
        return self._stop_deadline is not None

    @property
    def _is_writing(self) -> bool:
        """A batch is at the store. One that waits to be tried again is not."""
        return bool(self._flushing) and not self._retry_at

    @property
    def left_behind(self) -> int:
        return self.held.records

    @property
    def is_idle(self) -> bool:
        if self.held.records or self._intake.is_starting:
            return False
        at_end = all(self._consumer.at_end(held.at) for held in self.held)
        return at_end and (not self._options.joins_group or self._commits.is_clean(self.held))

    def health(self, now: float) -> StageHealth:
        reasons = [self.sink_trouble, self._intake.trouble, self._commits.trouble]
        reasons.append(self._settler.trouble)
        reasons += [blocked.reason for blocked in self._settler.blocked.values()]
        return StageHealth(
            stage=self.route.stage,
            group=self.route.group,
            kind="sink",
            unresolved=self.held.records,
            bytes_held=self.held.bytes,
            running=int(bool(self._flushing)),
            stuck=0,
            oldest_seconds=now - self._first_at if self.held.records else 0.0,
            next_due_ms=None,
            is_idle=self.is_idle,
            is_stopping=self.is_stopping,
            reasons=tuple(reason for reason in reasons if reason),
            partitions=partitions_of(self.held),
            counters=self.counters.as_object(),
        )

    # A rebalance calls these inside poll, on this thread.

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        """The sink's own position counts, whatever the group committed."""
        self._intake.assigned(dict.fromkeys(committed), self._now)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._store_before_leaving(partitions)
        if self._options.joins_group:
            self._commits.commit_now(self.held[at] for at in partitions if at in self.held)
        self._intake.drop(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self._intake.drop(partitions)

    def _store_before_leaving(self, partitions: Collection[TopicPartition]) -> None:
        leaving = [self.held[at] for at in partitions if at in self.held]
        deadline = self._clock.monotonic() + self._options.drain_seconds
        if self._stop_deadline is not None:
            deadline = min(deadline, self._stop_deadline)
        while any(held.progress.unresolved for held in leaving if not held.is_fenced):
            self._now = self._clock.monotonic()
            if self._now >= deadline or self.sink_trouble:
                return
            self._push()
            self._take_answers(self._now)
            self._flush(self._now)
            self._writer.wait(WRITER_SECONDS)

    def _leave(self, held: HeldPartition) -> None:
        """Rows of it that are not at the store yet are somebody else's to store."""
        self._queues.pop(held, None)
        split = [*self._to_flush] if self._is_writing else [*self._to_flush, self._flushing]
        for items in split:
            items[:] = [item for item in items if item.work.held is not held]
        if not self._flushing:
            self.sink_trouble = ""
        for work in [work for work in self._burying if work.held is held]:
            del self._burying[work]

    def _poll(self, now: float) -> list[Record]:
        if self._brought:
            brought, self._brought = self._brought, []
            return brought
        return self._intake.poll(0, POLL_RECORDS_MAX, now)

    def _take_in(self, records: Iterable[Record]) -> None:
        for record in records:
            held = self.held.by_place.get(record[3:5])
            if held is None or self.is_stopping or not self._stops.may_deliver(held, record):
                continue
            work = Work(record, held, len(record.value or b"") + len(record.key or b""))
            if not held.progress.deliver(record.offset, work):
                continue
            if not self.held.records:
                self._first_at = self._now
            self.held.records += 1
            self.held.bytes += work.size
            held.bytes_held += work.size
            self.counters.delivered += 1
            if (item := self._item(work)) is not None:
                self._queues.setdefault(held, deque()).append(item)

    def _item(self, work: Work) -> Item | None:
        """None where nothing may become of the record."""
        try:
            row = self._plan.make_row(work.record)
        except STOPS_ON as error:
            self._stop_for(error, work)
            return None
        except Exception as error:  # noqa: BLE001  the user's function, or a record it cannot take
            return self._failed(work, error)
        match row:
            case Skip():
                self.counters.skipped += 1
                return Item(work)
            case Reject(reason=reason, category=category):
                return self._bury(Item(work), Failure(category, reason))
            case _:
                return Item(work, row)

    def _failed(self, work: Work, error: Exception) -> Item:
        if isinstance(error, Undecodable) and self._plan.leaves_undecodable:
            self.counters.skipped += 1
            return Item(work)
        frames = error.__traceback__ and error.__traceback__.tb_next
        stack = "".join(format_exception(type(error), error, frames))
        failure = Failure(category_of(error), reason_of(error), type(error).__name__, stack)
        return self._bury(Item(work), failure)

    def _stop_for(self, error: BaseException, work: Work) -> None:
        """Its partition is left as the store has it: who reads it next meets the same."""
        self.stopped_by = error
        self._intake.say(
            "stage.stopped_by_handler", error_type=type(error).__name__, error_message=str(error)
        )
        self._intake.drop([work.held.at])
        self.stop(self._now + self._options.drain_seconds)

    def _bury(self, item: Item, failure: Failure) -> Item:
        """Its offset joins a batch when its dead letter is acknowledged."""
        item.row, item.is_buried, item.is_open = None, True, True
        self._burying[item.work] = item
        self._settler.settle(item.work, failure)
        return item

    def _buried(self, work: Work) -> None:
        item = self._burying.pop(work, None)
        if item is not None:
            item.is_open = False

    def _push(self) -> None:
        if self._settler.open:
            self._settler.push(self._now)
            self._settler.take_reports(0, self._now)

    def _flush_if_due(self, now: float) -> None:
        age = now - self._first_at
        is_due = self._plan.batch.is_due(self.held.records, self.held.bytes, age)
        if is_due or self._to_flush or self.is_stopping:
            self._flush(now)

    def _flush(self, now: float) -> None:
        """One at a time; what a refusal has split goes before what came later."""
        if self._flushing or now < self._retry_at:
            return
        items = self._to_flush.popleft() if self._to_flush else self._cut()
        if items:
            self._flushing = items
            self._first_at, self._retry_at = now, 0.0
            self._submit(is_repeat=False)

    def _cut(self) -> list[Item]:
        """Of each partition what is in order and ready."""
        room = self._plan.batch.records_max
        items: list[Item] = []
        for queue in self._queues.values():
            ready = 0
            for item in islice(queue, room - len(items)):
                if item.is_open:
                    break
                ready += 1
            items += [queue.popleft() for _ in range(ready)]
        return items

    def _submit(self, *, is_repeat: bool) -> None:
        rows = [item.row for item in self._flushing if item.row is not None]
        next_offsets = self._next_offsets(self._flushing)
        stands_at = {source: self._starts.positions.get(source) for source in next_offsets}
        self._writer.submit(Flush(rows, next_offsets, stands_at, is_repeat))

    def _next_offsets(self, items: Sequence[Item]) -> dict[SourcePartition, Offset]:
        return {
            self._starts.sources[item.work.held.at]: item.work.record.offset + 1 for item in items
        }

    def _take_answers(self, now: float) -> None:
        while self._writer.finished:
            self._take_answer(self._writer.finished.popleft(), now)
        if self._flushing and self._retry_at and now >= self._retry_at:
            self._retry_at = 0.0
            self._submit(is_repeat=True)

    def _take_answer(self, flushed: Flushed, now: float) -> None:
        match flushed.error:
            case None:
                self._starts.positions.update(flushed.flush.next_offsets)
                self._stored()
            case RowsRefused() as error:
                self._divide(error)
            case Fenced() as error:
                self._begin_again(error)
            case error:
                self._hold(error, now)

    def _stored(self) -> None:
        items, self._flushing = self._flushing, []
        self._failures_in_a_row, self.sink_trouble = 0, ""
        for item in items:
            self.counters.emitted += item.row is not None
            self.counters.handled += not item.is_buried
            self.held.resolve(item.work, self._now)

    def _divide(self, error: RowsRefused) -> None:
        """The rows are the cause: halve until they are alone, and bury those."""
        items, self._flushing = self._flushing, []
        with_rows = [item for item in items if item.row is not None]
        if not with_rows:
            self._flushing = items
            self._hold(error, self._now)
            return
        if len(with_rows) == 1:
            reason = f"The sink refuses the row: {error}"
            self._bury(with_rows[0], Failure(PERMANENT, reason, type(error).__name__))
            self._put_back(items)
            return
        middle = items.index(with_rows[len(with_rows) // 2])
        self._to_flush.extendleft([items[middle:], items[:middle]])

    def _put_back(self, items: Sequence[Item]) -> None:
        """Their partitions go on when the dead letter is acknowledged: in order, at the front."""
        later = [item for split in self._to_flush for item in split]
        self._to_flush.clear()
        for item in reversed([*items, *later]):
            if not item.work.held.is_fenced:
                self._queues.setdefault(item.work.held, deque()).appendleft(item)

    def _begin_again(self, error: Fenced) -> None:
        """Another writer was there: what it stored is not stored again."""
        places = {item.work.held.at for item in self._flushing if not item.work.held.is_fenced}
        self._flushing = []
        self._intake.say("stage.held", reason=str(error))
        self._intake.begin_again(places, self._now)

    def _hold(self, error: ForebayError, now: float) -> None:
        """The store is away, or somebody else wrote: nothing is lost, it is tried again."""
        self._flushing = [item for item in self._flushing if not item.work.held.is_fenced]
        if not self._flushing:
            return
        pause = BACK_OFF_SECONDS[min(self._failures_in_a_row, len(BACK_OFF_SECONDS) - 1)]
        self._failures_in_a_row += 1
        self._retry_at = now + pause
        self.counters.write_failures += 1
        if not self.sink_trouble:
            self._intake.say("stage.held", reason=str(error))
        self.sink_trouble = str(error)

    def _commit_if_due(self, now: float) -> None:
        if not self._options.joins_group:
            return
        self._commits.take_answers()
        is_idle = not self.held.records
        patience = self._options.commits_when_idle_after_seconds
        hurry = is_idle and self._commits.is_older_than(patience, now)
        self._commits.start_if_due(self.held, now, hurry=hurry)

    def _pause_and_resume(self) -> None:
        """Derived from what is held: everything waits while a full batch waits for the store."""
        waiting = self.held.records - len(self._flushing)
        is_full = not self._plan.batch.has_room(waiting, self.held.bytes)
        pause: list[TopicPartition] = []
        resume: list[TopicPartition] = []
        for held in self.held:
            wanted = is_full or self.is_stopping or held.is_at_stop
            if wanted != held.is_paused:
                (pause if wanted else resume).append(held.at)
                held.is_paused = wanted
        if pause:
            self._consumer.pause(pause)
        if resume:
            self._consumer.resume(resume)

    def _end_if_done(self, now: float) -> None:
        if self._stop_deadline is None:
            if self._stops.are_reached:
                self.stop(now + self._options.drain_seconds)
            elif any(held.is_at_stop for held in self.held):
                self._flush(now)
            return
        if not self.held.records or now >= self._stop_deadline:
            if self._options.joins_group:
                self._commits.commit_now(self.held)
            self.is_over = True

    def _what_to_wait_for(self, now: float) -> Wait:
        if self._brought or self._writer.finished:
            return Wait("finished", 0.0)
        if self._settler.open:
            return Wait("reports", REPORT_SECONDS)
        if self._flushing:
            return Wait("finished", WRITER_SECONDS)
        if not self.held.records:
            return Wait("records", IDLE_SECONDS)
        to_cut = self._first_at + self._plan.batch.seconds - now
        return Wait("records", max(0.001, min(IDLE_SECONDS, to_cut)))
