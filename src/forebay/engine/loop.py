"""The life of a record, in order: one step at a time, owned by one thread."""

from collections.abc import Collection, Mapping, Sequence

from forebay.core.envelope import open_envelope
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.engine.commits import Commits
from forebay.engine.counters import Counters
from forebay.engine.dispatch import Dispatch
from forebay.engine.doors import Doors, LoopOptions, Wait
from forebay.engine.executors import Executor
from forebay.engine.health import StageHealth, partitions_of
from forebay.engine.hooks import DoneRecords, Gate, Hooks
from forebay.engine.intake import Intake, Manners, Reader
from forebay.engine.one_by_one import OneByOne
from forebay.engine.overdue import Overdue
from forebay.engine.pauses import Pauses
from forebay.engine.settler import Destination, Settler
from forebay.engine.single_file import SingleFile
from forebay.engine.stages import RecordStage
from forebay.engine.starts import Starts
from forebay.engine.stops import Stops
from forebay.engine.work import HeldPartition, Stop, Work

POLL_RECORDS_MAX = 500
POLL_AT_LEAST_EVERY_SECONDS = 1.0
IDLE_SECONDS = 0.2
BELL_SECONDS = 0.002
QUIET_STEPS = 50  # that brought nothing, while handlers run: then it looks less often
QUIET_SECONDS = 0.02
REPORT_SECONDS = 0.005
LETTER_SECONDS = 0.05
_PUMP_SECONDS = 0.005


class StageLoop:
    """Consumer, producer, progress and lanes are touched by nobody else."""

    def __init__(
        self,
        stage: RecordStage,
        destination: Destination,
        doors: Doors,
        executor: Executor,
        options: LoopOptions | None = None,
        *,
        hooks: Hooks | None = None,
    ) -> None:
        hooks = hooks or Hooks()
        self.stage = stage
        self.route = destination.route
        self.counters = Counters()
        self._options = options or LoopOptions()
        self._consumer = doors.consumer
        self._executor = executor
        self._clock = doors.clock
        self._honoured = frozenset(self.route.re_entries.values())
        self._delay_ms_max = round(max(stage.retry.delays_seconds, default=0.0) * 1000)
        self._dispatch = Dispatch(executor, stage.order_by)
        self._gate = Gate(hooks.waits_for)
        when_done = hooks.when_done if self._options.joins_group else None
        self._done = DoneRecords(when_done, self._was_not_told) if when_done else None
        resolved = self._resolved if self._done is None else self._resolved_and_to_tell
        self._settler = Settler(destination, doors.producer, doors.clock, self.counters, resolved)
        self._overdue = Overdue(
            self._dispatch, self.counters, stage.timeout_seconds, self._settler.settle
        )
        self._commits = Commits(
            doors.consumer,
            self.counters,
            stage.commit_seconds,
            tells_above=bool(self.route.tiers),
            before=self._tell_what_is_done,
        )
        self._intake = Intake(
            Reader(self.route.pipeline, stage.name, self.route.group),
            doors,
            self.counters,
            self._commits,
            Starts(doors, dict.fromkeys(self.route.inputs, stage.start_at)),
            manners=Manners(self._dispatch.drop),
        )
        self.held = self._intake.held
        self._stops = Stops(self._options, self.route.inputs, self.counters, self.held)
        self._pauses = Pauses(doors.consumer, stage.bounds, self.held)
        self._one_by_one: OneByOne | None = None
        if self._options.single_file is not None:
            self._one_by_one = self._in_single_file(self._options.single_file)
        self._brought: list[Record] = []
        self._quiet_steps = 0
        self._now = doors.clock.monotonic()
        self._stop_deadline: float | None = None
        self.stopped_by: BaseException | None = None
        self.wants_restart = False
        self.is_over = False

    def start(self) -> None:
        if self._options.by_hand is None:
            self._consumer.subscribe(self.route.reads, self)
            return
        self._consumer.assign(self._options.by_hand)
        for at, offset in self._options.by_hand.items():
            self.held.add(at, offset, self._now)

    def step(self, now: float) -> Wait:
        self._now = now
        records = self._poll(now)
        is_quiet = not (records or self._executor.finished)
        self._quiet_steps = self._quiet_steps + 1 if is_quiet else 0
        self._take_in(records)
        self._settle()
        self._hand_out(now)
        self._push()
        self._fence_overdue(now)
        self._commit_if_due(now)
        self._pauses.converge(now, is_stopping=self.is_stopping)
        self._end_if_done(now)
        return self._what_to_wait_for(now)

    def rest(self, wait: Wait) -> None:
        """Not part of a step: a simulation waits in its own way."""
        match wait.until:
            case "finished":
                self._executor.wait(wait.seconds)
            case "reports":
                self._settler.take_reports(wait.seconds, self._now)
            case "records":
                room = min(self._pauses.room(), POLL_RECORDS_MAX)
                self._brought = self._intake.poll(wait.seconds, room, self._now)

    def stop(self, deadline: float) -> None:
        """Take nothing new, finish what runs, commit. What has not started stays unresolved.

        Where the queue is drained it is started, as far as the deadline allows.
        """
        if self._stop_deadline is None:
            self._settler.hurries = True
            if not self._options.drains_queue:
                self._drop_queue()
        self._stop_deadline = min(deadline, self._stop_deadline or deadline)

    @property
    def is_stopping(self) -> bool:
        return self._stop_deadline is not None

    @property
    def left_behind(self) -> int:
        """Records that run or are being settled; those about to run, too, until it is over."""
        running = self._dispatch.begun if self.is_over else self._dispatch.running
        return running + self._settler.open

    @property
    def is_idle(self) -> bool:
        """Nothing is held, every assigned partition was read to its end, all of it is committed."""
        if self.held.records or self.left_behind or self._intake.is_starting:
            return False
        at_end = all(self._consumer.at_end(held.at) for held in self.held)
        return at_end and (not self._options.joins_group or self._commits.is_clean(self.held))

    def health(self, now: float) -> StageHealth:
        started = (work.started_at for lane in self._dispatch.out if (work := lane.running))
        return StageHealth(
            stage=self.stage.name,
            group=self.route.group,
            kind="record",
            unresolved=self.held.records,
            bytes_held=self.held.bytes,
            running=self._dispatch.begun,
            stuck=len(self._dispatch.stuck),
            oldest_seconds=max(0.0, now - min(started, default=now)),
            next_due_ms=None,
            is_idle=self.is_idle,
            is_stopping=self.is_stopping,
            reasons=self._reasons(),
            partitions=partitions_of(self.held),
            counters=self.counters.as_object(),
        )

    def _reasons(self) -> tuple[str, ...]:
        """What keeps it from working, in sentences."""
        reasons = [self._intake.trouble, self._commits.trouble, self._settler.trouble]
        reasons += [blocked.reason for blocked in self._settler.blocked.values()]
        reasons.append(self._gate.reason or "")
        if self.counters.expired:
            reasons.append(
                f"{self.counters.expired} records were deleted before this stage read them."
            )
        if self._dispatch.stuck:
            reasons.append(f"{len(self._dispatch.stuck)} handlers did not return in time.")
        return tuple(reason for reason in reasons if reason)

    # A rebalance calls these inside poll, on this thread.

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self._intake.assigned(committed, self._now)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Drain first, then commit, then fence: others get exactly what is not done here."""
        leaving = [self.held[at] for at in partitions if at in self.held]
        for held in leaving:
            self._dispatch.drop(held)
        self._settler.hurries = True
        self._drain(leaving)
        self._settler.hurries = self.is_stopping
        if self._options.joins_group and (self._options.commits_at_end or not self.is_stopping):
            self._commits.commit_now(leaving)
        self._intake.drop(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self._intake.drop(partitions)

    def _drain(self, leaving: Collection[HeldPartition]) -> None:
        """Pump the same step for what runs; the other partitions go on meanwhile."""
        options = self._options
        deadline = self._clock.monotonic() + min(options.drain_seconds, options.revoke_seconds)
        if self._stop_deadline is not None:
            deadline = min(deadline, self._stop_deadline)
        while any(held.handed_out or held.settling for held in leaving):
            self._now = self._clock.monotonic()
            if self._now >= deadline:
                return
            self._executor.wait(_PUMP_SECONDS)
            self._settle()
            self._push()
            self._start_what_may(self._now)

    def _drop_queue(self) -> None:
        for held in self.held:
            self._dispatch.drop(held)

    def _poll(self, now: float) -> list[Record]:
        if self._brought:
            brought, self._brought = self._brought, []
            return brought
        room = 0 if self.is_stopping else self._pauses.room()
        if room > 0:
            return self._intake.poll(0, min(room, POLL_RECORDS_MAX), now)
        if now - self._intake.polled_at >= POLL_AT_LEAST_EVERY_SECONDS:
            self._pauses.converge(now, is_stopping=self.is_stopping)
            return self._intake.poll(0, 1, now)
        return []

    def _take_in(self, records: Sequence[Record]) -> None:
        held = self.held
        for record in records:
            partition = held.by_place.get(record[3:5])
            if partition is None or not self._stops.may_deliver(partition, record):
                continue
            value, key = record[0], record[1]
            size = (len(value) if value else 0) + (len(key) if key else 0)
            work = Work(record, partition, size)
            if not partition.progress.deliver(record[5], work):
                continue
            held.records += 1
            held.bytes += size
            partition.bytes_held += size
            self.counters.delivered += 1
            if self.is_stopping:
                continue
            if record[3] in self._honoured:
                work.envelope = open_envelope(
                    record, self.route.group, self.stage.retry.attempts_max, self._delay_ms_max
                )
            if self._one_by_one is None:
                self._dispatch.take(work)
            else:
                self._one_by_one.park(work)

    def _hand_out(self, now: float) -> None:
        if self._one_by_one is not None:
            if self.is_stopping or self._gate.is_closed(now):
                return
            if self._one_by_one.step(self.held, now):
                return
            self._one_by_one = None
        self._start_what_may(now)

    def _start_what_may(self, now: float) -> None:
        if not self._gate.is_closed(now):
            self._dispatch.hand_out(len(self.held))

    def _in_single_file(self, single_file: SingleFile) -> OneByOne:
        return OneByOne(
            single_file,
            self.route.group,
            self._consumer,
            self._commits,
            self._dispatch,
            settle=self._settler.settle,
        )

    def _settle(self) -> None:
        finished = self._executor.finished
        while finished:
            lane, work, is_end_of_lane = finished.popleft()
            if is_end_of_lane:
                self._dispatch.ended(lane)
            if work is None:
                continue
            if work.is_fenced or work.held.is_fenced:
                self.counters.late += 1
                continue
            self.counters.took(work.finished_at - work.started_at)
            result = work.result
            if result is None or isinstance(result, Stop):
                self._stop_for(result)
                continue
            self._settler.settle(work, result)

    def _stop_for(self, result: Stop | None) -> None:
        """The record is not resolved: who reads it next meets the same."""
        error = result.error if result else RuntimeError("a handler left no result")
        self.stopped_by = error
        self._intake.say(
            "stage.stopped_by_handler", error_type=type(error).__name__, error_message=str(error)
        )
        self.stop(self._now + self._options.drain_seconds)
        self._drop_queue()

    def _push(self) -> None:
        settler = self._settler
        if settler.open:
            settler.push(self._now)
            settler.take_reports(0, self._now)

    def _resolved(self, work: Work) -> None:
        self.held.resolve(work, self._now)

    def _resolved_and_to_tell(self, work: Work) -> None:
        if self._done is not None:
            self._done.add(work)
        self._resolved(work)

    def _tell_what_is_done(self) -> None:
        if self._done is not None:
            self._done.flush()

    def _was_not_told(self, error: Exception) -> None:
        self._intake.say(
            "stage.when_done_failed", error_type=type(error).__name__, error_message=str(error)
        )

    def _fence_overdue(self, now: float) -> None:
        for work in self._overdue.fence(now):
            self._intake.say(
                "record.timed_out", limit_seconds=self.stage.timeout_seconds, **_place(work)
            )
        if not self._dispatch.stuck:
            return
        for lane in self._overdue.hopeless(now):
            if self._options.supervised:
                self.wants_restart = True
                self.stop(now + self._options.drain_seconds)
                return
            self._intake.say("stage.lane_reopened", **_place(self._dispatch.stuck[lane]))
            self._dispatch.reopen(lane)

    def _commit_if_due(self, now: float) -> None:
        if not self._options.joins_group:
            return
        self._commits.take_answers()
        half_a_span = self.stage.bounds.span // 2
        hurry = any(held.progress.resolved_above > half_a_span for held in self.held)
        if not self.held.records:
            patience = self._options.commits_when_idle_after_seconds
            hurry = hurry or self._commits.is_older_than(patience, now)
        self._commits.start_if_due(self.held, now, hurry=hurry)

    def _end_if_done(self, now: float) -> None:
        if self._stop_deadline is None:
            if self._stops.are_reached:
                self.stop(now + self._options.drain_seconds)
            return
        is_done = not self.left_behind and not self._dispatch.has_waiting
        if is_done or now >= self._stop_deadline:
            self._drop_queue()
            if self._options.joins_group and self._options.commits_at_end:
                self._commits.commit_now(self.held)
            self.is_over = True

    def _may_take(self, now: float) -> bool:
        """A poll would bring something, or wait; else it would come back at once."""
        return not (self.is_stopping or self._intake.is_waiting(now)) and self._pauses.room() > 0

    def _what_to_wait_for(self, now: float) -> Wait:
        if self._executor.finished or self._brought:
            return Wait("finished", 0.0)
        if self._dispatch.running:
            is_quiet = self._quiet_steps > QUIET_STEPS and self._may_take(now)
            return Wait("records", QUIET_SECONDS) if is_quiet else Wait("finished", BELL_SECONDS)
        if self._settler.waits_for_letters_alone:
            return Wait("finished", LETTER_SECONDS)
        if self._settler.open:
            return Wait("reports", REPORT_SECONDS)
        if not self._may_take(now):
            return Wait("finished", IDLE_SECONDS)
        return Wait("records", self._options.idle_seconds)


def _place(work: Work) -> dict[str, object]:
    topic, partition, offset = work.record[3:6]
    return {"topic": topic, "partition": partition, "offset": offset}
