"""Brings retries back when they are due: never early, rarely late, never into a flood."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from forebay.broker.port import Report
from forebay.core.clock import Clock
from forebay.core.envelope import first_envelope, open_envelope, seal
from forebay.core.errors import ForebayError, Full, Rejected, UnknownTopic
from forebay.core.failures import EXHAUSTED, Failure, reason_of
from forebay.core.lag_gate import LagGate
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.engine.commits import Commits
from forebay.engine.counters import Counters
from forebay.engine.doors import Doors, Wait
from forebay.engine.health import StageHealth, partitions_of
from forebay.engine.intake import Intake, Reader
from forebay.engine.lag import unresolved_on
from forebay.engine.routes import SCHEDULER, Route, Tier
from forebay.engine.settler import smaller_envelope
from forebay.engine.starts import Starts
from forebay.engine.work import HeldPartition, Work

QUEUE_RECORDS_MAX = 1_000
QUEUE_BYTES_MAX = 4 * 2**20
LOOK_EVERY_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.05
TRICKLE_SECONDS = 1.0
COMMIT_SECONDS = 1.0
IDLE_SECONDS = 0.2
REPORT_SECONDS = 0.005
BACK_OFF_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Waiting:
    """One retry: what it becomes and when."""

    work: Work
    record: Record
    due_ms: int


@dataclass(slots=True)
class Target:
    """The re-entry topic of a stage and what lies on it."""

    route: Route
    topic: str
    gate: LagGate
    looked_at: float = 0.0


class TierQueue:
    """What was read of one tier partition, in order."""

    def __init__(self, held: HeldPartition, tier: Tier) -> None:
        self.held = held
        self.tier = tier
        self.waiting: deque[Waiting] = deque()
        self.trickled_at = 0.0

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= QUEUE_RECORDS_MAX or self.held.bytes_held >= QUEUE_BYTES_MAX

    @property
    def has_room(self) -> bool:
        half = len(self.waiting) <= QUEUE_RECORDS_MAX // 2
        return half and self.held.bytes_held <= QUEUE_BYTES_MAX // 2


class Redelivery:
    """The only reader of a pipeline's tier topics. Steps like the stage loop."""

    def __init__(self, pipeline: str, group: str, routes: Iterable[Route], doors: Doors) -> None:
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
            leaves=self._leave,
        )
        self._queues: dict[HeldPartition, TierQueue] = {}
        self._targets: dict[str, Target] = {}
        self._brought: list[Record] = []
        self._retry_at = 0.0
        self._now = doors.clock.monotonic()
        self._stop_deadline: float | None = None
        self.blocked: dict[str, str] = {}
        self.late_seconds_max = 0.0

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self._tiers)

    def start(self) -> None:
        self._doors.consumer.subscribe(self.topics, self)

    def step(self, now: float) -> Wait:
        self._now = now
        self._take_in(self._poll(now))
        self._acknowledge(self._doors.producer.poll(0))
        self._release_what_is_due(now)
        self._commit_if_due(now)
        self._pause_and_resume()
        if self.is_stopping and (not self.in_flight or now >= (self._stop_deadline or 0)):
            self._commits.commit_now(self._intake.held)
            self.is_over = True
        return self._what_to_wait_for(now)

    def rest(self, wait: Wait) -> None:
        if self._brought:
            return
        if wait.until == "reports":
            self._acknowledge(self._doors.producer.poll(wait.seconds))
        else:
            self._brought = self._intake.poll(wait.seconds, QUEUE_RECORDS_MAX, self._now)

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
        heads = [queue.waiting[0].due_ms for queue in self._queues.values() if queue.waiting]
        return min(heads, default=None)

    @property
    def left_behind(self) -> int:
        """Nothing: what was not acknowledged lies in its tier."""
        return 0

    def health(self, now: float) -> StageHealth:  # noqa: ARG002  the protocol's; ours is the clock's
        held = self._intake.held
        reasons = (self._intake.trouble, self._commits.trouble, *self.blocked.values())
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

    def _overdue_seconds(self) -> float:
        """How long the first that may go back has waited for it."""
        due_ms = self.next_due_ms
        return 0.0 if due_ms is None else max(0.0, self._clock.now() - due_ms / 1000)

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        self._intake.assigned(committed, self._now)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """What was sent and acknowledged is committed; the rest comes again, with the same id."""
        self._acknowledge(self._doors.producer.poll(0))
        held = self._intake.held
        self._commits.commit_now(held[at] for at in partitions if at in held)
        self._intake.drop(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self._intake.drop(partitions)

    def _leave(self, held: HeldPartition) -> None:
        self._queues.pop(held, None)

    def _poll(self, now: float) -> list[Record]:
        if self._brought:
            brought, self._brought = self._brought, []
            return brought
        return self._intake.poll(0, QUEUE_RECORDS_MAX, now)

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
            self._queue(held).waiting.append(self._planned(work))

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
        work.envelope = envelope
        back = route.re_entry(envelope.origin.topic)
        headers = seal(record, replace(envelope, due_ms=0))
        return Waiting(work, Record(record.value, record.key, headers, back), due_ms)

    def _release_what_is_due(self, now: float) -> None:
        if self.is_stopping or now < self._retry_at:
            return
        now_ms = self._clock.now() * 1000
        for queue in list(self._queues.values()):
            while queue.waiting and queue.waiting[0].due_ms <= now_ms:
                if not self._may_pass(queue, queue.waiting[0], now, now_ms):
                    break
                if not self._send(queue.waiting.popleft(), now):
                    return

    def _may_pass(self, queue: TierQueue, head: Waiting, now: float, now_ms: float) -> bool:
        target = self._target(head)
        if target is None:
            return True
        if target.gate.allowance == 0:
            self._look(target, now)
        if target.gate.allowance > 0:
            target.gate.released()
            return True
        is_starving = now_ms - head.due_ms > queue.tier.delay_seconds * 1000
        if is_starving and now - queue.trickled_at >= TRICKLE_SECONDS:
            queue.trickled_at = now
            return True
        return False

    def _target(self, head: Waiting) -> Target | None:
        """None for a dead letter, which nobody waits for."""
        route, topic = self._route(head), head.record.topic
        if topic == route.dead_letter_topic:
            return None
        return self._targets.setdefault(topic, Target(route, topic, LagGate()))

    def _look(self, target: Target, now: float) -> None:
        """After each batch that was released, and once a second while it is closed."""
        was_open = target.gate.is_open
        pause = LOOK_AGAIN_SECONDS if was_open else LOOK_EVERY_SECONDS
        if target.looked_at and now - target.looked_at < pause:
            return
        target.looked_at = now
        lag: int | None = None
        try:
            lag = unresolved_on(self._doors.admin, target.route.group, target.topic)
        except ForebayError as error:
            self.blocked[target.topic] = str(error)
        target.gate.look(lag)
        if was_open and not target.gate.is_open:
            self._intake.say(
                "redelivery.held", consumer_group=target.route.group, lag=lag, topic=target.topic
            )

    def _send(self, head: Waiting, now: float) -> bool:
        """False where nothing more goes out for now."""
        try:
            self._doors.producer.send(head.record, head)
        except Full:
            self._again(head)
            return False
        except ForebayError as error:
            self._refused(head, error, now)
            return False
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
        self.blocked.pop(topic, None)
        self.counters.handled += 1
        late = self._clock.now() - sent.due_ms / 1000
        self.late_seconds_max = max(self.late_seconds_max, late)
        self._intake.held.resolve(sent.work, self._now)

    def _refused(self, sent: Waiting, error: ForebayError, now: float) -> None:
        """One that can never be sent must not stop its tier: it becomes a dead letter."""
        self.counters.write_failures += 1
        is_final = isinstance(error, Rejected) and not isinstance(error, UnknownTopic)
        letter = self._as_dead_letter(sent, error) if is_final else None
        if letter is None:
            self.blocked[sent.record.topic] = str(error)
            self._retry_at = now + BACK_OFF_SECONDS
        self._again(letter or sent)

    def _as_dead_letter(self, sent: Waiting, error: ForebayError) -> Waiting | None:
        """With less said of it each time; None when nothing is left to leave out."""
        topic, envelope = self._route(sent).dead_letter_topic, sent.work.envelope
        if topic is None or envelope is None:
            return None
        if sent.record.topic == topic:
            smaller = smaller_envelope(envelope)
            if smaller is None:
                return None
        else:
            reason = f"It cannot go back to {sent.record.topic}: {reason_of(error)}"
            failure = Failure(EXHAUSTED, reason, type(error).__name__)
            now_ms = int(self._clock.now() * 1000)
            smaller = envelope.failed(failure, now_ms, attempt=max(1, envelope.attempt - 1))
            self.counters.dead_lettered += 1
        sent.work.envelope = smaller
        source = sent.work.record
        record = Record(source.value, source.key, seal(source, smaller), topic)
        return replace(sent, record=record)

    def _again(self, sent: Waiting) -> None:
        queue = self._queues.get(sent.work.held)
        if queue is not None:
            queue.waiting.appendleft(sent)

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

    def _what_to_wait_for(self, now: float) -> Wait:
        if self._brought:
            return Wait("records", 0.0)
        if self.in_flight:
            return Wait("reports", REPORT_SECONDS)
        return Wait("records", min(IDLE_SECONDS, self._seconds_to_next(now)))

    def _seconds_to_next(self, now: float) -> float:
        """Until a head is due, or may be tried again after it was held."""
        due_ms = self.next_due_ms
        if due_ms is None:
            return IDLE_SECONDS
        to_due = due_ms / 1000 - self._clock.now()
        return max(LOOK_AGAIN_SECONDS if to_due <= 0 else 0.001, to_due, self._retry_at - now)
