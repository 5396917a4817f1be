"""From an outcome to a resolved record: nothing resolves before all it leaves behind is durable."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, TypeAlias

from forebay.broker.port import Producer, Report
from forebay.core.batches import BatchRule
from forebay.core.clock import Clock
from forebay.core.durations import seconds
from forebay.core.envelope import Envelope, first_envelope, seal
from forebay.core.errors import (
    ForebayError,
    Full,
    InvalidName,
    InvalidRequest,
    RecordTooLarge,
    UnknownPartition,
    UnknownTopic,
    Unusable,
)
from forebay.core.failures import (
    CIRCUIT_OPEN,
    EXHAUSTED,
    PERMANENT,
    Failure,
    is_tried_again,
    reason_of,
)
from forebay.core.markers import Marker, mark
from forebay.core.outcomes import DONE, Done, Outcome, Reject, Retry, Skip
from forebay.core.records import Header, Record
from forebay.core.retries import UNCOUNTED_SECONDS_MAX, RetryPolicy
from forebay.engine.counters import Counters
from forebay.engine.dead_letters import DeadLetter, LetterFile, Spill
from forebay.engine.handling import output_records
from forebay.engine.routes import Route
from forebay.engine.stages import WhenDeadLettered
from forebay.engine.work import Result, Work

HOOK_FAILED: Header = ("forebay-hook-failed", b"when_dead_lettered")
BACK_OFF_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)

Role: TypeAlias = Literal["output", "retry", "letter", "marker"]
_REFUSED = (RecordTooLarge, InvalidName, InvalidRequest, UnknownPartition)


@dataclass(slots=True)
class Settlement:
    """What one record leaves behind. It resolves when nothing is open any more."""

    work: Work
    open: int = 0
    is_dead: bool = False
    last: "Parcel | None" = None
    is_retried: bool = False


@dataclass(slots=True)
class Parcel:
    """One record to be acknowledged. `envelope` is set where the record could be made smaller;
    `number` tells the order in which parcels were made.
    """

    settlement: Settlement
    record: Record
    role: Role
    envelope: Envelope | None = None
    extra: tuple[Header, ...] = ()
    number: int = 0


@dataclass(slots=True)
class Blocked:
    """A topic that refuses for now."""

    reason: str
    until: float
    tries: int = 1


@dataclass(frozen=True, slots=True)
class Destination:
    """All that a stage's settler needs to know of the stage."""

    route: Route
    retry: RetryPolicy
    when_dead_lettered: WhenDeadLettered | None = None
    letter_file: LetterFile | None = None
    spill: Spill | None = None
    letter_batch: BatchRule | None = None


class Settler:
    """Belongs to the engine thread. `resolved` is called with each record that is durable."""

    def __init__(
        self,
        destination: Destination,
        producer: Producer,
        clock: Clock,
        counters: Counters,
        resolved: Callable[[Work], None],
    ) -> None:
        self._to = destination
        self._route = destination.route
        self._ours = frozenset((*self._route.derived_topics, *self._route.re_entries.values()))
        self._producer = producer
        self._clock = clock
        self._counters = counters
        self._resolved = resolved
        self._waiting: dict[str, deque[Parcel]] = {}
        self._letters: deque[tuple[Settlement, DeadLetter]] = deque()
        self._disordered: set[str] = set()
        self._numbered = 0
        self.blocked: dict[str, Blocked] = {}
        self._letters_since = 0.0
        self.hurries = False  # dead letters of a file do not wait for a batch of them
        self.open = 0
        self.trouble = ""

    def settle(self, work: Work, result: Result) -> None:
        envelope = work.envelope
        if result is DONE and (envelope is None or not envelope.replay_id):
            self._counters.handled += 1
            self._resolved(work)
            return
        settlement = Settlement(work)
        self.open += 1
        work.held.settling += 1
        if work.outputs:
            self._add_outputs(settlement, work.outputs)
        match result:
            case Done() | Skip():
                self._succeed(settlement, result)
            case Reject(reason=reason, category=category):
                self._bury(settlement, Failure(category, reason))
            case Retry() | Failure():
                self._fail(settlement, result)
            case _:
                raise InvalidRequest(f"{result!r} is no outcome.")
        self._close_if_done(settlement)

    def push(self, now: float) -> None:
        """Send what waits, until the producer is full or a topic refuses."""
        if self._waiting:
            for topic in list(self._waiting):
                if not self._push_topic(topic, now):
                    break
        if self._letters and self._may_write_letters(now):
            self._write_letters(now)

    def take_reports(self, seconds: float, now: float) -> None:
        """A broker that refuses its client altogether is waited for."""
        try:
            reports = self._producer.poll(seconds)
        except ForebayError as error:
            self.trouble = str(error)
            return
        self.trouble = ""
        self.acknowledge(reports, now)

    def acknowledge(self, reports: Iterable[Report], now: float) -> None:
        for report in reports:
            parcel = report.token
            if not isinstance(parcel, Parcel):
                continue
            if report.error is None:
                if self.blocked:
                    self.blocked.pop(report.topic, None)
                self._acknowledged(parcel)
            else:
                self._refused(parcel, report.error, now)

    @property
    def next_try_at(self) -> float | None:
        """When a topic that refused is tried again."""
        return min((blocked.until for blocked in self.blocked.values()), default=None)

    @property
    def has_unsent(self) -> bool:
        return bool(self._waiting or self._letters)

    @property
    def waits_for_letters_alone(self) -> bool:
        """For their batch, or for a file that cannot be written: no report will come."""
        return 0 < len(self._letters) == self.open

    def _succeed(self, settlement: Settlement, outcome: Done | Skip) -> None:
        if isinstance(outcome, Skip):
            self._counters.skipped += 1
        self._end_replay(settlement, outcome)

    def _end_replay(self, settlement: Settlement, outcome: Outcome) -> None:
        """A replay ends where its record does; the dead letter itself says that it failed again."""
        envelope = settlement.work.envelope
        if envelope is None or not envelope.replay_id:
            return
        topic = self._route.dead_letter_topic
        if topic is None:
            return
        marker = Marker(
            id=envelope.id,
            group=envelope.group,
            kind="resolved",
            replay_number=envelope.replay_number,
            replay_id=envelope.replay_id,
            at_ms=self._now_ms(),
            actor=self._route.worker,
            reason=outcome.reason if isinstance(outcome, Skip) else "",
        )
        self._counters.replays_ended += 1
        self._add(Parcel(settlement, mark(marker, topic, settlement.work.record.key), "marker"))

    def _fail(self, settlement: Settlement, result: Retry | Failure) -> None:
        failure, after_seconds, counts = _told(result)
        if not is_tried_again(failure.category) and isinstance(result, Failure):
            self._bury(settlement, failure)
            return
        envelope = self._envelope(settlement.work)
        now_ms = self._now_ms()
        counts = (counts and failure.category != CIRCUIT_OPEN) or _waited_too_long(envelope, now_ms)
        tier = self._to.retry.tier_after(envelope.attempt, after_seconds, counts=counts)
        if tier is None:
            self._bury(settlement, failure)
            return
        self._send_to_tier(settlement, failure, tier, counts=counts)

    def _send_to_tier(
        self, settlement: Settlement, failure: Failure, tier: int, *, counts: bool
    ) -> None:
        envelope, now_ms = self._envelope(settlement.work), self._now_ms()
        target = self._route.tiers[tier]
        going = envelope.failed(
            failure,
            now_ms,
            attempt=envelope.attempt + counts,
            due_ms=now_ms + round(target.delay_seconds * 1000),
        )
        since_ms = 0 if counts else envelope.uncounted_since_ms or now_ms
        going = replace(going, uncounted_since_ms=since_ms)
        settlement.is_retried = True
        self._counters.retried += 1
        record = _sealed(settlement.work.record, going, target.topic)
        self._add(Parcel(settlement, record, "retry", going))

    def _bury(self, settlement: Settlement, failure: Failure) -> None:
        """To the dead letters; what its author wants said of it goes with it."""
        work = settlement.work
        settlement.is_dead, settlement.is_retried = True, False
        work.result = failure
        settlement.last = None
        self._counters.dead_lettered += 1
        attempts = self._envelope(work).attempt
        envelope = self._envelope(work).failed(failure, self._now_ms(), attempt=attempts)
        extra = self._add_hook_outputs(settlement, failure)
        topic = self._route.dead_letter_topic
        if topic is None:
            settlement.open += 1
            if not self._letters:
                self._letters_since = self._clock.monotonic()
            self._letters.append((settlement, DeadLetter(work.record, envelope, work.took_ms)))
            return
        record = _sealed(work.record, envelope, topic, extra)
        self._add(Parcel(settlement, record, "letter", envelope, tuple(extra)))

    def _add_hook_outputs(self, settlement: Settlement, failure: Failure) -> list[Header]:
        hook = self._to.when_dead_lettered
        if hook is None:
            return []
        record = settlement.work.record
        try:
            outputs = list(output_records(record, hook(record, failure) or {}))
        except Exception:  # noqa: BLE001  a user's function; the dead letter alone resolves then
            self._counters.hooks_failed += 1
            return [HOOK_FAILED]
        self._add_outputs(settlement, outputs)
        return []

    def _add_outputs(self, settlement: Settlement, outputs: Iterable[Record]) -> None:
        for record in outputs:
            self._add(Parcel(settlement, record, "output"))

    def _add(self, parcel: Parcel) -> None:
        settlement = parcel.settlement
        if parcel.role != "output" and settlement.open:
            settlement.last = parcel
            return
        settlement.open += 1
        self._numbered += 1
        parcel.number = self._numbered
        topic = parcel.record.topic
        waiting = self._waiting.get(topic)
        if waiting is None:
            waiting = self._waiting[topic] = deque()
        waiting.append(parcel)

    def _push_topic(self, topic: str, now: float) -> bool:
        """False when the producer is full."""
        blocked = self.blocked.get(topic)
        if blocked is not None and now < blocked.until:
            return True
        if topic in self._disordered:
            self._disordered.discard(topic)
            in_order = sorted(self._waiting[topic], key=attrgetter("number"))
            self._waiting[topic] = deque(in_order)
        parcels = self._waiting[topic]
        while parcels:
            parcel = parcels.popleft()
            if parcel.settlement.work.held.is_fenced:
                self._forget(parcel.settlement)
                continue
            try:
                self._producer.send(parcel.record, parcel)
            except Full:
                parcels.appendleft(parcel)
                return False
            except ForebayError as error:
                self._refused(parcel, error, now)
                if topic in self.blocked:
                    break
        if not parcels:
            self._waiting.pop(topic, None)
        return True

    def _refused(self, parcel: Parcel, error: ForebayError, now: float) -> None:
        """For good: the outcome changes. For now: the record is held and sent again."""
        if parcel.settlement.work.held.is_fenced:
            self._forget(parcel.settlement)
        elif not self._is_final(parcel, error):
            self._counters.write_failures += 1
            self._block(parcel.record.topic, error, now)
            self._waiting.setdefault(parcel.record.topic, deque()).appendleft(parcel)
            self._disordered.add(parcel.record.topic)
        elif parcel.role == "output":
            self._lose_output(parcel, error)
        else:
            self._shrink(parcel, error)

    def _is_final(self, parcel: Parcel, error: ForebayError) -> bool:
        if isinstance(error, UnknownTopic):
            return parcel.record.topic not in self._ours
        return isinstance(error, _REFUSED)

    def _lose_output(self, parcel: Parcel, error: ForebayError) -> None:
        """An output that can never be written makes its record a dead letter."""
        settlement = parcel.settlement
        if not settlement.is_dead:
            reason = f"An output for {parcel.record.topic} was refused: {reason_of(error)}"
            self._bury(settlement, Failure(PERMANENT, reason, type(error).__name__))
        self._closed_one(settlement)

    def _shrink(self, parcel: Parcel, error: ForebayError) -> None:
        """The record with less said about it; at last a tier's becomes a dead letter."""
        settlement, envelope = parcel.settlement, parcel.envelope
        source = settlement.work.record
        smaller = envelope and smaller_envelope(envelope)
        if smaller is not None:
            record = _sealed(source, smaller, parcel.record.topic, parcel.extra)
            self._add(replace(parcel, record=record, envelope=smaller))
        elif parcel.role == "retry" and envelope is not None:
            reason = f"It fits no retry topic: {reason_of(error)}"
            self._bury(settlement, Failure(EXHAUSTED, reason, type(error).__name__))
        elif parcel.role == "letter" and envelope is not None and self._to.spill is not None:
            self._letters.append((settlement, DeadLetter(source, envelope)))
            return
        else:
            self._block(parcel.record.topic, error, self._clock.monotonic())
            self._waiting.setdefault(parcel.record.topic, deque()).appendleft(parcel)
            return
        self._closed_one(settlement)

    def _may_write_letters(self, now: float) -> bool:
        batch = self._to.letter_batch
        if batch is None or self.hurries:
            return True
        return batch.is_due(len(self._letters), 0, now - self._letters_since)

    def _write_letters(self, now: float) -> None:
        place = "the dead-letter file" if self._to.letter_file else "the ledger"
        blocked = self.blocked.get(place)
        if blocked is not None and now < blocked.until:
            return
        waiting = [pair for pair in self._letters if not pair[0].work.held.is_fenced]
        try:
            self._keep([letter for _, letter in waiting])
        except ForebayError as error:
            self._counters.write_failures += 1
            self._block(place, error, now)
            return
        self.blocked.pop(place, None)
        gone, self._letters = self._letters, deque()
        for settlement, _ in gone:
            self._closed_one(settlement)

    def _keep(self, letters: list[DeadLetter]) -> None:
        if self._to.letter_file is not None:
            self._to.letter_file.write(letters)
        elif self._to.spill is not None:
            for letter in letters:
                self._to.spill.keep(letter, str(self._route.dead_letters))
        else:
            raise Unusable(
                f"{self._route.worker} has no place for its dead letters. They are held, nothing "
                f"is lost. Declare dead_letters as a topic, or run where the ledger is."
            )

    def _block(self, place: str, error: ForebayError, now: float) -> None:
        known = self.blocked.get(place)
        tries = 0 if known is None else known.tries
        until = now + BACK_OFF_SECONDS[min(tries, len(BACK_OFF_SECONDS) - 1)]
        if known is None or now >= known.until:
            self.blocked[place] = Blocked(str(error), until, tries + 1)

    def _acknowledged(self, parcel: Parcel) -> None:
        if parcel.role == "output":
            self._counters.emitted += 1
        self._closed_one(parcel.settlement)

    def _closed_one(self, settlement: Settlement) -> None:
        settlement.open -= 1
        if settlement.open == 0 and settlement.last is not None:
            last, settlement.last = settlement.last, None
            self._add(last)
        self._close_if_done(settlement)

    def _close_if_done(self, settlement: Settlement) -> None:
        if settlement.open == 0:
            self._leave(settlement)
            if not (settlement.work.held.is_fenced or settlement.is_retried):
                self._counters.handled += 1
            self._resolved(settlement.work)

    def _forget(self, settlement: Settlement) -> None:
        """Its partition has left; somebody else handles the record again."""
        self._counters.late += 1
        settlement.open -= 1
        if settlement.open == 0:
            self._leave(settlement)

    def _leave(self, settlement: Settlement) -> None:
        self.open -= 1
        settlement.work.held.settling -= 1
        if not self.open:
            self.blocked.clear()

    def _envelope(self, work: Work) -> Envelope:
        if work.envelope is None:
            work.envelope = first_envelope(self._route.group, work.record)
        return work.envelope

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)


def _sealed(source: Record, envelope: Envelope, topic: str, extra: Iterable[Header] = ()) -> Record:
    return Record(source.value, source.key, seal(source, envelope, extra), topic)


def smaller_envelope(envelope: Envelope) -> Envelope | None:
    """With less said of it; None when nothing is left to leave out."""
    if envelope.failure is not None and envelope.failure.stack:
        return envelope.without_stack()
    if envelope.history:
        return envelope.without_history()
    return None


def _told(result: Retry | Failure) -> tuple[Failure, float | None, bool]:
    if isinstance(result, Failure):
        return result, result.retry_after_seconds, True
    after = None if result.after is None else seconds(result.after)
    return Failure(result.category, result.reason), after, result.counts


def _waited_too_long(envelope: Envelope, now_ms: int) -> bool:
    since = envelope.uncounted_since_ms
    return bool(since) and now_ms - since > UNCOUNTED_SECONDS_MAX * 1000
