"""One sink stage over a memory broker and a store that outlives its processes, stepped by hand."""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.stepped import Door
from forebay.core.batches import BatchRule
from forebay.core.errors import ForebayError, RowsRefused
from forebay.core.outcomes import Skip
from forebay.core.records import Offset, Record, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.core.sinks import SourcePartition
from forebay.core.topics import TopicSpec
from forebay.engine.doors import Doors, LoopOptions
from forebay.engine.payloads import Undecodable
from forebay.engine.routes import sink_route
from forebay.engine.settler import Destination
from forebay.engine.sink_loop import SinkLoop, SinkPlan
from forebay.engine.sink_writer import Flush, Flushed, carry_out
from forebay.engine.stages import RowFile, SinkStage
from forebay.state.positions import is_stored_already
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker

SALES, GROUP, LETTERS = "sales", "shop-rows", "shop-rows.dlq"


class Crash(BaseException):
    """The process is gone, in the middle of whatever it did."""


@dataclass
class Store:
    """What survives: rows and positions, together."""

    rows: list[Any] = field(default_factory=list)
    positions: dict[SourcePartition, Offset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AfterAll:
    """The commit happens, and its answer is this."""

    error: Exception


class ScriptedSink:
    """Keeps the contract of a sink over a store, and fails where a test says so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._expected: dict[SourcePartition, Offset | None] = {}
        self.answers: deque[Exception | AfterAll] = deque()
        self.away: Exception | None = None
        self.refuses: set[str] = set()
        self.calls: list[str] = []

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        self.calls.append("position")
        if self.away is not None:
            raise self.away
        found = {source: self._store.positions.get(source) for source in partitions}
        self._expected.update(found)
        return found

    def commit(self, rows: Sequence[Any], next_offsets: Mapping[SourcePartition, Offset]) -> None:
        self.calls.append("commit")
        answer = self.answers.popleft() if self.answers else self.away
        if isinstance(answer, Exception):
            raise answer
        bad = [row["id"] for row in rows if row["id"] in self.refuses]
        if bad:
            raise RowsRefused(f"The store can never take {', '.join(bad)}.")
        if not is_stored_already(self._store.positions, self._expected, next_offsets):
            self._store.rows += rows
            self._store.positions.update(next_offsets)
            self._expected.update(next_offsets)
        if answer is not None:
            raise answer.error

    def close(self) -> None:
        """Nothing is open."""


class HandWriter:
    """Carries a flush out at once, when a test says so, or after `takes_seconds`."""

    def __init__(self, sink: Any, clock: FakeClock) -> None:
        self._sink = sink
        self._clock = clock
        self._begun_at = 0.0
        self.runs_at_once = True
        self.takes_seconds: float | None = None
        self.pending: Flush | None = None
        self.finished: deque[Flushed] = deque()
        self.sizes: list[int] = []

    def submit(self, flush: Flush) -> None:
        assert self.pending is None, "two batches at once"
        self.pending, self._begun_at = flush, self._clock.monotonic()
        self.sizes.append(len(flush.rows))
        if self.runs_at_once and self.takes_seconds is None:
            self.finish()

    def finish(self) -> None:
        flush, self.pending = self.pending, None
        assert flush is not None
        self.finished.append(carry_out(self._sink, flush))

    def look(self) -> None:
        if self.pending is None or self.takes_seconds is None:
            return
        if self._clock.monotonic() - self._begun_at >= self.takes_seconds:
            self.finish()

    def wait(self, seconds: float) -> None:
        self._clock.advance(seconds)
        self.look()

    def close(self) -> None:
        """Nothing is open."""


def row_of(record: Record) -> Any:
    match record.value:
        case None | b"bad":
            raise Undecodable("The value is no sale.")
        case b"skip":
            return Skip("no sale")
        case value:
            return {"id": value.decode(), "amount": 1}


class Depot:
    """A broker, its clock, one topic, and a store."""

    def __init__(self, partitions: int = 1, **plan: Any) -> None:
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock)
        self.admin = self.broker.admin()
        stage = SinkStage(name="rows", reads=SALES, row=row_of, target=RowFile("never-written"))
        self.route = sink_route("shop", "shop", stage)
        self.admin.create_topic(TopicSpec(SALES, partitions))
        self.admin.create_topic(TopicSpec(LETTERS))
        self.sender = self.broker.producer()
        self.store = Store()
        self.plan = SinkPlan(
            plan.pop("make_row", row_of),
            plan.pop("batch", BatchRule(3, 5.0)),
            Destination(self.route, RetryPolicy(())),
            **plan,
        )

    def produce(self, *values: bytes | str | int | None, partition: int = 0) -> None:
        for value in values:
            raw = value if isinstance(value, bytes | None) else str(value).encode()
            self.sender.send(Record(raw, b"k", [], SALES, partition))
        self.sender.poll(0)

    @property
    def stored(self) -> list[str]:
        return [row["id"] for row in self.store.rows]

    @property
    def positions(self) -> dict[int, Offset]:
        """Of the topic as it is now."""
        (described,) = self.admin.describe_topics([SALES])
        return {
            source.partition: offset
            for source, offset in self.store.positions.items()
            if source.incarnation == described.id
        }

    def letters(self) -> list[bytes | None]:
        log = self.broker._store.log(TopicPartition(LETTERS, 0))
        return [record.value for record in log.read(0, 10_000)]

    def committed(self, partition: int = 0) -> int | None:
        known = self.broker._store.group(GROUP).committed.get(TopicPartition(SALES, partition))
        return known.offset if known else None

    def member(self, sink: Any = None, **options: Any) -> "SteppedSink":
        return SteppedSink(self, sink or ScriptedSink(self.store), LoopOptions(**options))


class SteppedSink:
    """One process of the sink stage."""

    def __init__(
        self,
        depot: Depot,
        sink: Any,
        options: LoopOptions,
        door: Callable[[Any], Any] = Door,
    ) -> None:
        self.depot, self.clock = depot, depot.clock
        self.sink = sink
        watched = door(sink)
        self.writer = HandWriter(watched, depot.clock)
        self.consumer = door(depot.broker.consumer(GROUP))
        self.producer = door(depot.broker.producer())
        self.said: list[str] = []
        doors = Doors(
            self.consumer,
            self.producer,
            depot.broker.admin(),
            depot.clock,
            emit=lambda event, **_: self.said.append(event),
        )
        self.loop = SinkLoop(depot.plan, watched, self.writer, doors, options)
        self.loop.start()

    def step(self, times: int = 1, *, seconds: float = 0.0) -> None:
        """Each step after `seconds` have passed."""
        for _ in range(times):
            self.clock.advance(seconds)
            self.writer.look()
            self.loop.step(self.clock.monotonic())

    def run_until_idle(self, within_seconds: float = 60.0) -> None:
        deadline = self.clock.monotonic() + within_seconds
        while True:
            self.step()
            if self.loop.is_idle:
                return
            assert self.clock.monotonic() < deadline, f"not idle: {self.health}"
            self.clock.advance(0.1)

    @property
    def health(self) -> Any:
        return self.loop.health(self.clock.monotonic())

    @property
    def batches(self) -> list[int]:
        return self.writer.sizes

    def expel(self) -> None:
        """The group gives it up, and it has not heard of that yet."""
        member = self.depot.broker._store.group(GROUP)
        member.leave(self.consumer.inner._member.id)

    def outage(self, error: ForebayError | None) -> None:
        self.sink.away = error
