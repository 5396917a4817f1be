"""Brings retries back when they are due: never early, rarely late, never into a flood."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from forebay.broker.port import Report
from forebay.core.clock import Clock
from forebay.core.envelope import Envelope, first_envelope, open_envelope, seal
from forebay.core.errors import ForebayError, Full, Rejected, UnknownTopic
from forebay.core.failures import EXHAUSTED, Failure, reason_of
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.engine.commits import Commits
from forebay.engine.counters import Counters
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.doors import DRAIN_SECONDS, Doors, Wait
from forebay.engine.health import StageHealth, partitions_of
from forebay.engine.intake import Intake, Manners, Reader
from forebay.engine.routes import SCHEDULER, Route
from forebay.engine.settler import smaller_envelope
from forebay.engine.starts import Starts
from forebay.engine.targets import LOOK_AGAIN_SECONDS, Targets
from forebay.engine.tier_queue import RECORDS_MAX, TierQueue, Waiting
from forebay.engine.work import HeldPartition, Work

TRICKLE_SECONDS = 1.0
COMMIT_SECONDS = 1.0
IDLE_SECONDS = 0.2
REPORT_SECONDS = 0.005

Keep: TypeAlias = Callable[[Route, DeadLetter], None]


class Redelivery:
    """The only reader of a pipeline's tier topics. Steps like the stage loop.

    `keep` takes dead letters that no topic takes; durable on return, raises what may pass.
    """

    def __init__(
        self,
        pipeline: str,
        group: str,
        routes: Iterable[Route],
        doors: Doors,
        *,
        keep: Keep | None = None,
    ) -> None:
        self.group = group
        self.counters = Counters()
        self.is_over = False
        self._doors = doors
        self._clock: Clock = doors.clock
        self._tiers = {tier.topic: (route, tier) for route in routes for tier in route.tiers}
        self._commits = Commits(doors.consumer, self.counters, COMMIT_SECONDS, tells_above=False)
        self._intake = Intake(
            Reader(pipeline, SCHEDULER, group),
            doors,
            self.counters,
            self._commits,
            Starts(doors, {}),
            manners=Manners(self._leave),
        )
        self._keep = keep
        self._queues: dict[HeldPartition, TierQueue] = {}
        self._targets = Targets(doors.admin, self._say_held)
        self._brought: list[Record] = []
        self._now = doors.clock.monotonic()
        self._stop_deadline: float | None = None
        self._producer_trouble = ""
        self.late_seconds_max = 0.0

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self._tiers)

    def start(self) -> None:
        self._doors.consumer.subscribe(self.topics, self)

    def step(self, now: float) -> Wait:
        self._now = now
        self._take_in(self._poll(now))
        self._acknowledge(self._reports(0))
        self._release_what_is_due(now)
        self._commit_if_due(now)
        self._pause_and_resume()
        if self.is_stopping and (not self.in_flight or now >= (self._stop_deadline or 0)):
            self._commits.commit_now(self._intake.held)
            self.is_over = True
        return self._what_to_wait_for()

    def rest(self, wait: Wait) -> None:
        if self._brought:
            return
        if wait.until == "reports":
            self._acknowledge(self._reports(wait.seconds))
        else:
            self._brought = self._intake.poll(wait.seconds, RECORDS_MAX, self._now)

    def stop(self, deadline: float) -> None:
        self._stop_deadline = min(deadline, self._stop_deadline or deadline)

    @property
    def is_stopping(self) -> bool:
        return self._stop_deadline is not None

    @property
    def in_flight(self) -> int:
        return self._doors.producer.outstanding

    @property
    def next_due_ms(self) -> int | None:
        heads = [head.due_ms for queue in self._queues.values() if (head := queue.head)]
        return min(heads, default=None)

    @property
    def left_behind(self) -> int:
        """Nothing: what was not acknowledged lies in its tier."""
        return 0

    def health(self, now: float) -> StageHealth:  # noqa: ARG002  the protocol's; ours is the clock's
        held = self._intake.held
        reasons = [self._intake.trouble, self._commits.trouble, self._producer_trouble]
        reasons += self._targets.reasons(self._topics_in_use())
        return StageHealth(
            stage=SCHEDULER,
            group=self.group,
            kind="scheduler",
            unresolved=held.records,
            bytes_held=held.bytes,
            running=0,
            stuck=0,
            oldest_seconds=self._overdue_seconds(),
            next_due_ms=self.next_due_ms,
            is_idle=not self.in_flight and self._overdue_seconds() == 0.0,
            is_stopping=self.is_stopping,
            reasons=tuple(reason for reason in reasons if reason),
            partitions=partitions_of(held),
            counters=self.counters.as_object(),
        )

    def _topics_in_use(self) -> set[str]:
        tiers = {
            queue.held.at.topic for queue in self._queues.values() if queue.waiting + queue.sent
        }
        routes = [self._tiers[tier][0] for tier in tiers]
        topics = {topic for route in routes for topic in route.re_entries.values()}
        return topics | {str(route.dead_letters) for route in routes}

    def _overdue_seconds(self) -> float:
        """How long the first that may go back has waited for it."""
        due_ms = self.next_due_ms
        return 0.0 if due_ms is None else max(0.0, self._clock.now() - due_ms / 1000)

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self._intake.assigned(committed, self._now)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """What was sent is acknowledged and committed first: it would come again otherwise."""
        held = self._intake.held
        leaving = [held[at] for at in partitions if at in held]
        self._wait_for_reports([self._queue(partition) for partition in leaving])
        self._commits.commit_now(leaving)
        self._intake.drop(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self._intake.drop(partitions)

    def _wait_for_reports(self, queues: Collection[TierQueue]) -> None:
        deadline = self._clock.monotonic() + DRAIN_SECONDS
        if self._stop_deadline is not None:
            deadline = min(deadline, self._stop_deadline)
        self._acknowledge(self._reports(0))
        while any(queue.sent for queue in queues) and self._clock.monotonic() < deadline:
            self._acknowledge(self._reports(REPORT_SECONDS))

    def _reports(self, seconds: float) -> list[Report]:
        try:
            reports = self._doors.producer.poll(seconds)
        except ForebayError as error:
            self._producer_trouble = str(error)
            return []
        self._producer_trouble = ""
        return reports

    def _leave(self, held: HeldPartition) -> None:
        self._queues.pop(held, None)

    def _poll(self, now: float) -> list[Record]:
        if self._brought:
            brought, self._brought = self._brought, []
            return brought
        return self._intake.poll(0, RECORDS_MAX, now)

    def _take_in(self, records: Iterable[Record]) -> None:
        held_partitions = self._intake.held
        for record in records:
            held = held_partitions.by_place.get(record[3:5])
            if held is None:
                continue
            work = Work(record, held, len(record.value or b"") + len(record.key or b""))
            if not held.progress.deliver(record.offset, work):
                continue
            held_partitions.records += 1
            held_partitions.bytes += work.size
            held.bytes_held += work.size
            self.counters.delivered += 1
            self._queue(held).add(self._planned(work))

    def _queue(self, held: HeldPartition) -> TierQueue:
        queue = self._queues.get(held)
        if queue is None:
            _, tier = self._tiers[held.at.topic]
            queue = self._queues[held] = TierQueue(held, tier)
        return queue

    def _planned(self, work: Work) -> Waiting:
        """A record whose headers say nothing we understand waits its tier's delay."""
        record = work.record
        route, tier = self._tiers[record.topic]
        delay_ms = round(tier.delay_seconds * 1000)
        envelope = open_envelope(record, route.group, len(route.tiers) + 1, delay_ms)
        if envelope is None:
            envelope = replace(first_envelope(route.group, record), attempt=2)
        due_ms = envelope.due_ms or record.timestamp_ms + delay_ms
        back = route.re_entry(envelope.origin.topic)
        headers = seal(record, replace(envelope, due_ms=0))
        return Waiting(work, Record(record.value, record.key, headers, back), envelope, due_ms)

    def _release_what_is_due(self, now: float) -> None:
        if self.is_stopping:
            return
        for queue in list(self._queues.values()):
            while self._may_release(queue, now):
                if not self._send(queue, queue.take_head(), now):
                    return

    def _may_release(self, queue: TierQueue, now: float) -> bool:
        head, now_ms = queue.head, self._clock.now() * 1000
        if head is None or head.due_ms > now_ms:
            return False
        topic, route = head.record.topic, self._route(head)
        if self._targets.is_refused(topic, now):
            return False
        if topic == route.dead_letter_topic or self._targets.has_room(topic, route.group, now):
            return True
        is_starving = now_ms - head.due_ms > queue.tier.delay_seconds * 1000
        return is_starving and now - queue.trickled_at >= TRICKLE_SECONDS

    def _say_held(self, group: str, topic: str, lag: int | None) -> None:
        self._intake.say("redelivery.held", consumer_group=group, lag=lag, topic=topic)

    def _send(self, queue: TierQueue, head: Waiting, now: float) -> bool:
        """False where the producer is full."""
        try:
            self._doors.producer.send(head.record, head)
        except Full:
            queue.put_back(head)
            return False
        except ForebayError as error:
            self._refused(head, error, now)
            return True
        queue.trickled_at = now
        self._targets.sent_to(head.record.topic)
        return True

    def _acknowledge(self, reports: Iterable[Report]) -> None:
        for report in reports:
            sent = report.token
            if not isinstance(sent, Waiting):
                continue
            if report.error is None:
                self._came_back(sent, report.topic)
            elif not sent.work.held.is_fenced:
                self._refused(sent, report.error, self._now)

    def _came_back(self, sent: Waiting, topic: str) -> None:
        self._targets.took(topic)
        self.counters.handled += 1
        late = self._clock.now() - sent.due_ms / 1000
        self.late_seconds_max = max(self.late_seconds_max, late)
        self._intake.held.resolve(sent.work, self._now)

    def _refused(self, sent: Waiting, error: ForebayError, now: float) -> None:
        """One that can never be sent must not stop its tier: it becomes a dead letter."""
        self.counters.write_failures += 1
        queue = self._queues.get(sent.work.held)
        if queue is None:
            return
        if not isinstance(error, Rejected) or isinstance(error, UnknownTopic):
            self._targets.refused(sent.record.topic, error, now)
            queue.put_back(sent)
            return
        if (letter := self._as_dead_letter(sent, error)) is not None:
            queue.put_back(letter)
        elif (problem := self._keep_elsewhere(sent, error)) is not None:
            self._targets.refused(sent.record.topic, problem, now)
            queue.put_back(sent)

    def _as_dead_letter(self, sent: Waiting, error: ForebayError) -> Waiting | None:
        """With less said of it each time; None when nothing is left to leave out."""
        topic, source = self._route(sent).dead_letter_topic, sent.work.record
        if topic is None:
            return None
        if sent.record.topic == topic:
            envelope = smaller_envelope(sent.envelope)
        else:
            envelope = self._dead_envelope(sent, error)
            self.counters.dead_lettered += 1
        if envelope is None:
            return None
        record = Record(source.value, source.key, seal(source, envelope), topic)
        return replace(sent, record=record, envelope=envelope)

    def _dead_envelope(self, sent: Waiting, error: ForebayError) -> Envelope:
        reason = f"It cannot go back to {sent.record.topic}: {reason_of(error)}"
        failure = Failure(EXHAUSTED, reason, type(error).__name__)
        now_ms, attempts = int(self._clock.now() * 1000), max(1, sent.envelope.attempt - 1)
        return sent.envelope.failed(failure, now_ms, attempt=attempts)

    def _keep_elsewhere(self, sent: Waiting, error: ForebayError) -> ForebayError | None:
        """None when it is durable; otherwise why it has to wait."""
        if self._keep is None:
            return error
        route, envelope = self._route(sent), sent.envelope
        if route.dead_letter_topic is None:
            envelope = self._dead_envelope(sent, error)
        try:
            self._keep(route, DeadLetter(sent.work.record, envelope))
        except ForebayError as problem:
            return problem
        self.counters.dead_lettered += route.dead_letter_topic is None
        self._came_back(sent, sent.record.topic)
        return None

    def _route(self, waiting: Waiting) -> Route:
        route, _ = self._tiers[waiting.work.record.topic]
        return route

    def _commit_if_due(self, now: float) -> None:
        self._commits.take_answers()
        self._commits.start_if_due(self._intake.held, now, hurry=False)

    def _pause_and_resume(self) -> None:
        """Derived from what is queued: a partition waits while its queue is full."""
        for held in self._intake.held:
            queue = self._queues.get(held)
            if queue is None:
                continue
            if queue.is_full and not held.is_paused:
                held.is_paused = True
                self._doors.consumer.pause([held.at])
            elif held.is_paused and queue.has_room:
                held.is_paused = False
                self._doors.consumer.resume([held.at])

    def _what_to_wait_for(self) -> Wait:
        if self._brought:
            return Wait("records", 0.0)
        if self.in_flight:
            return Wait("reports", REPORT_SECONDS)
        return Wait("records", min(IDLE_SECONDS, self._seconds_to_next()))

    def _seconds_to_next(self) -> float:
        """Until a head is due, or may be tried again after it was held."""
        due_ms = self.next_due_ms
        if due_ms is None:
            return IDLE_SECONDS
        to_due = due_ms / 1000 - self._clock.now()
        return max(LOOK_AGAIN_SECONDS if to_due <= 0 else 0.001, to_due)
