"""One stage over a memory broker, stepped by hand in virtual time."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from forebay.core.errors import ForebayError
from forebay.core.records import Record, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.core.topics import TopicSpec
from forebay.engine.context import Surroundings
from forebay.engine.doors import Doors, LoopOptions
from forebay.engine.executors import Bell, Finished, run_lane
from forebay.engine.functions import inspect_function
from forebay.engine.handling import Handler
from forebay.engine.hooks import hooks_of
from forebay.engine.loop import StageLoop
from forebay.engine.routes import record_route
from forebay.engine.settler import Destination
from forebay.engine.stages import RecordStage
from forebay.engine.work import Work, WorkLane
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker

INPUT, OUT = "orders", "receipts"
TIER, LETTERS = "shop-charge.retry.5s", "shop-charge.dlq"


class Door:
    """A client of the broker whose calls fail where a test says so. `calls` are those made."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.failing: dict[str, ForebayError] = {}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        if name in self.failing:
            return self._fail
        return getattr(self.inner, name)

    def _fail(self, *_: object, **__: object) -> None:
        raise self.failing[self.calls[-1]]


class HandExecutor:
    """Runs a lane when a test says so; `runs_at_once` as soon as it is handed out."""

    def __init__(self, handler: Handler, clock: FakeClock, *, runs_at_once: bool) -> None:
        self._handler = handler
        self._clock = clock
        self._bell = Bell()
        self.runs_at_once = runs_at_once
        self.capacity = 20
        self.replaced = 0
        self.lanes: deque[WorkLane] = deque()
        self.finished: deque[Finished] = deque()
        self.while_waiting: Callable[[], object] = lambda: None

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        self.lanes.extend(lanes)
        if self.runs_at_once:
            self.finish_all()

    def begin(self) -> tuple[WorkLane, Work]:
        """The next lane's handler runs, and does not return before `end`."""
        lane = self.lanes.popleft()
        work = lane.waiting.popleft()
        lane.running, work.started_at = work, self._clock.monotonic()
        return lane, work

    def end(self, lane: WorkLane, work: Work) -> None:
        self._handler.run(work)
        lane.running = None
        is_end = not lane.waiting or work.is_fenced
        self.finished.append(Finished(lane, work, is_end))
        if not is_end:
            self.lanes.appendleft(lane)

    def finish_all(self) -> None:
        while self.lanes:
            run_lane(self.lanes.popleft(), self._handler, self.finished, self._bell)

    def wait(self, seconds: float) -> None:
        self.while_waiting()
        self._clock.advance(seconds)

    def replace_worker(self) -> None:
        self.replaced += 1

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class Shop:
    """A broker, its clock, and the topics of one stage."""

    handle: Callable[..., Any] = lambda record: None
    partitions: int = 1
    owned: bool = True
    record_bytes_max: int = 1_000_000
    stage_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock, record_bytes_max=self.record_bytes_max)
        options = {"reads": INPUT, "retry": RetryPolicy((5.0,)), "timeout_seconds": 8.0}
        self.stage = RecordStage(name="charge", run=self.handle, **(options | self.stage_options))
        owned = frozenset(self.stage.topics) if self.owned else frozenset()
        self.route = record_route("shop", "shop", self.stage, owns_alone=owned)
        admin = self.broker.admin()
        for topic in dict.fromkeys((*self.route.reads, *self.route.derived_topics, OUT)):
            is_input = topic in self.route.inputs
            admin.create_topic(TopicSpec(topic, self.partitions if is_input else 1))
        self.sender = self.broker.producer()

    def produce(self, *values: bytes, **fields: Any) -> None:
        for value in values:
            self.sender.send(Record(value, **{"topic": INPUT, "key": b"a", **fields}))
        self.sender.poll(0)

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        return self.broker._store.log(TopicPartition(topic, partition)).read(0, 10_000)

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for record in self.records(topic)]

    def committed(self, partition: int = 0, topic: str = INPUT) -> int | None:
        group = self.broker._store.group(self.route.group)
        known = group.committed.get(TopicPartition(topic, partition))
        return known.offset if known else None

    def member(self, options: LoopOptions | None = None, *, runs_at_once: bool = True) -> "Stepped":
        return Stepped(self, options or LoopOptions(drain_seconds=2.0), runs_at_once=runs_at_once)


class Stepped:
    """One process of the stage. A planted fault has a loop class of its own."""

    loop_class: type[StageLoop] = StageLoop

    def __init__(self, shop: Shop, options: LoopOptions, *, runs_at_once: bool) -> None:
        self.shop, self.clock = shop, shop.clock
        stage, route = shop.stage, shop.route
        handler = Handler(
            inspect_function(stage.run),
            Surroundings("shop", stage.name, route.group, shop.clock),
            stage.retry,
            stage.stops_on,
        )
        self.executor = HandExecutor(handler, shop.clock, runs_at_once=runs_at_once)
        self.consumer = Door(shop.broker.consumer(route.group))
        self.producer = Door(shop.broker.producer())
        self.admin = Door(shop.broker.admin())
        self.said: list[str] = []
        doors = Doors(
            self.consumer,
            self.producer,
            self.admin,
            shop.clock,
            emit=lambda event, **_: self.said.append(event),
        )
        destination = Destination(route, stage.retry, stage.when_dead_lettered)
        hooks = hooks_of(stage, {})
        self.loop = self.loop_class(stage, destination, doors, self.executor, options, hooks=hooks)
        self.loop.start()

    def step(self, times: int = 1, *, seconds: float = 0.0) -> None:
        """Each step after `seconds` have passed."""
        for _ in range(times):
            self.clock.advance(seconds)
            self.loop.step(self.clock.monotonic())

    def run_until_idle(self, within_seconds: float = 60.0) -> None:
        deadline = self.clock.monotonic() + within_seconds
        while True:
            self.step()
            if self.loop.is_idle and not self.executor.finished:
                return
            assert self.clock.monotonic() < deadline, f"not idle: {self.loop._reasons()}"
            self.clock.advance(0.1)

    def expel(self) -> None:
        """The group gives it up, and it has not heard of that yet."""
        self.shop.broker._store.group(self.shop.route.group).leave(self.consumer.inner._member.id)

    def held(self, partition: int = 0) -> Any:
        return self.loop.held[TopicPartition(INPUT, partition)]
