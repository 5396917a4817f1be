"""The redelivery scheduler of one stage over a memory broker, stepped by hand in virtual time."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.stepped import Door
from forebay.broker.port import Report
from forebay.core.envelope import first_envelope, seal
from forebay.core.errors import ForebayError
from forebay.core.failures import TRANSIENT, Failure
from forebay.core.records import UNSET, CommittedOffset, Record, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.core.topics import TopicSpec
from forebay.engine.commits import CommitNote
from forebay.engine.doors import Doors, Wait
from forebay.engine.redelivery import Redelivery
from forebay.engine.routes import Route, record_route
from forebay.engine.stages import RecordStage
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker

INPUT, SCHEDULER = "orders", "shop-retry-scheduler"
BUSY = Failure(TRANSIENT, "the bank is busy", "BankError", "line 7")


def route_of(stage: str, *delays: float, **options: Any) -> Route:
    fields = {"name": stage, "reads": INPUT, "run": print, "retry": RetryPolicy(delays)}
    return record_route("shop", "shop", RecordStage(**fields, **options), owns_alone=frozenset())


class ScriptedProducer:
    """The memory broker's, but for what a test scripts: refusals at once or by report, silence."""

    def __init__(self, inner: Any, clock: FakeClock) -> None:
        self._inner = inner
        self._clock = clock
        self._reports: deque[Report] = deque()
        self.raises: dict[str, ForebayError] = {}
        self.reports: dict[str, ForebayError] = {}
        self.poll_raises: ForebayError | None = None
        self.is_silent = False
        self.polled_seconds = 0.0

    @property
    def outstanding(self) -> int:
        return len(self._reports)

    def send(self, record: Record, token: object = None) -> None:
        if record.topic in self.raises:
            raise self.raises[record.topic]
        if record.topic in self.reports:
            error = self.reports[record.topic]
            self._reports.append(Report(token, record.topic, UNSET, UNSET, UNSET, error))
            return
        self._inner.send(record, token)
        self._reports.extend(self._inner.poll(0))

    def poll(self, timeout_seconds: float) -> list[Report]:
        if self.poll_raises is not None:
            raise self.poll_raises
        if self.is_silent:
            self.polled_seconds += timeout_seconds
            self._clock.advance(timeout_seconds)
            return []
        reports = list(self._reports)
        self._reports.clear()
        return reports


class Tiers:
    """A broker, its clock, and the tiers of some stages."""

    def __init__(self, *routes: Route, partitions: int = 1) -> None:
        self.routes = routes or (route_of("charge", 5.0, 60.0),)
        self.route = self.routes[0]
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock)
        admin = self.broker.admin()
        admin.create_topic(TopicSpec(INPUT, 1))
        for topic in dict.fromkeys(t for route in self.routes for t in route.derived_topics):
            is_tier = ".retry." in topic
            admin.create_topic(TopicSpec(topic, partitions if is_tier else 1))
        self.sender = self.broker.producer()

    @property
    def again(self) -> str:
        return self.route.re_entry(INPUT)

    @property
    def now_ms(self) -> int:
        return int(self.clock.now() * 1000)

    def fail(
        self, value: bytes, *, tier: int = 0, route: Route | None = None, **fields: Any
    ) -> None:
        """As the stage's settler writes it: due is the time of the failure and the tier's delay."""
        route = route or self.route
        source = Record(value, b"k", [("colour", b"red")], INPUT, 0, int(fields.pop("offset", 0)))
        target = route.tiers[tier]
        due_ms = int(fields.pop("due_ms", self.now_ms + target.delay_seconds * 1000))
        envelope = first_envelope(route.group, source).failed(
            BUSY, self.now_ms, attempt=tier + 2, due_ms=due_ms
        )
        self.put(target.topic, value, seal(source, envelope), **fields)

    def put(
        self, topic: str, value: bytes | None, headers: Iterable[Any] = (), **fields: Any
    ) -> None:
        key = fields.pop("key", b"k")
        self.sender.send(Record(value, key, list(headers), topic, **fields))
        self.sender.poll(0)

    def flood(self, records: int, *, above: int = 0, topic: str = "") -> None:
        """So many records lie in front of the stage, `above` of them resolved out of order."""
        at = TopicPartition(topic or self.again, 0)
        for _ in range(records):
            self.put(at.topic, b"fresh")
        note = CommitNote(above, 1, 0).written()
        self.broker._store.group(self.route.group).committed[at] = CommittedOffset(0, note)

    def catch_up(self, to_lag: int) -> None:
        at = TopicPartition(self.again, 0)
        end = self.broker._store.log(at).end
        self.broker._store.group(self.route.group).committed[at] = CommittedOffset(end - to_lag)

    def records(self, topic: str = "") -> list[Record]:
        log = self.broker._store.log(TopicPartition(topic or self.again, 0))
        return log.read(log.low, 100_000)

    def back(self, topic: str = "") -> list[bytes | None]:
        """What was brought back, in order."""
        return [record.value for record in self.records(topic) if record.value != b"fresh"]

    def committed(self, topic: str, partition: int = 0) -> int | None:
        group = self.broker._store.group(SCHEDULER)
        known = group.committed.get(TopicPartition(topic, partition))
        return known.offset if known else None

    def member(self, **options: Any) -> "SteppedScheduler":
        return SteppedScheduler(self, **options)


@dataclass(frozen=True, slots=True)
class Sent:
    at_ms: int
    record: Record


class SteppedScheduler:
    """One process of the scheduler."""

    def __init__(self, tiers: Tiers, **options: Any) -> None:
        self.tiers, self.clock = tiers, tiers.clock
        self.consumer = Door(tiers.broker.consumer(SCHEDULER))
        self.producer = ScriptedProducer(tiers.broker.producer(), tiers.clock)
        self.admin = Door(tiers.broker.admin())
        self.said: list[str] = []
        doors = Doors(
            self.consumer,
            self.producer,
            self.admin,
            tiers.clock,
            emit=lambda event, **_: self.said.append(event),
        )
        self.loop = Redelivery("shop", SCHEDULER, tiers.routes, doors, **options)
        self.loop.start()

    def step(self, times: int = 1, *, seconds: float = 0.0) -> Wait:
        """Each step after `seconds` have passed."""
        for _ in range(times):
            self.clock.advance(seconds)
            wait = self.loop.step(self.clock.monotonic())
        return wait

    def run_for(self, seconds: float) -> None:
        """As its thread drives it: waits as long as each step says, and then polls."""
        deadline = self.clock.monotonic() + seconds
        while (now := self.clock.monotonic()) < deadline:
            wait = self.loop.step(now)
            self.clock.advance(min(wait.seconds, deadline - now) or 0.000_1)
            self.loop.rest(Wait(wait.until, 0.0))

    @property
    def health(self) -> Any:
        return self.loop.health(self.clock.monotonic())

    def expel(self) -> None:
        """The group gives it up, and it has not heard of that yet."""
        self.tiers.broker._store.group(SCHEDULER).leave(self.consumer.inner._member.id)
