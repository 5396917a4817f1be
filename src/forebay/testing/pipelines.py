"""Runs a pipeline in a test: no broker, no threads, and time that moves only when told."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from forebay.core.durations import seconds
from forebay.core.envelope import read_envelope, seal, user_headers
from forebay.core.failures import Failure
from forebay.core.markers import read_marker
from forebay.core.records import Header, Record, TopicPartition
from forebay.engine.assembly import sink_plan
from forebay.engine.context import Surroundings
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.doors import Doors, LoopOptions
from forebay.engine.executors import Finished, InlineExecutor
from forebay.engine.functions import inspect_function
from forebay.engine.handling import Handler
from forebay.engine.hooks import hooks_of
from forebay.engine.loop import StageLoop
from forebay.engine.outside import http_client
from forebay.engine.payloads import encode
from forebay.engine.pipeline import Pipeline
from forebay.engine.redelivery import Redelivery
from forebay.engine.routes import Route
from forebay.engine.settler import Destination
from forebay.engine.sink_loop import SinkLoop
from forebay.engine.sink_writer import InlineSinkWriter
from forebay.engine.stages import RecordStage, SinkStage
from forebay.engine.threads import Loop
from forebay.engine.topics import create_topics, plan_topics
from forebay.engine.work import WorkLane
from forebay.observability.catalogue import silent
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker
from forebay.testing.memory_sink import MemorySink

QUIET_ROUNDS = 3
ROUNDS_MAX = 10_000
TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Buried:
    """One dead letter, as a test looks at it."""

    stage: str
    record: Record
    failure: Failure
    attempt: int

    @property
    def value(self) -> Any:
        return plain(self.record.value)

    @property
    def reason(self) -> str:
        return self.failure.reason

    @property
    def category(self) -> str:
        return self.failure.category


@contextmanager
def run(pipeline: Pipeline, *, http: Any = None) -> "Iterator[PipelineInTest]":
    """Everything the pipeline has, stepped in this thread. What it sends is handled at once.

    `http` stands in for `context.http`; without it, the hosts that the pipeline lists are asked.
    """
    with ExitStack() as closing:
        yield PipelineInTest(pipeline, closing, http)


class PipelineInTest:
    def __init__(self, pipeline: Pipeline, closing: ExitStack, http: Any = None) -> None:
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock)
        closing.callback(self.broker.close)
        self._pipeline = pipeline
        self._routes = pipeline.routes
        create_topics(self.broker.admin(), plan_topics(pipeline), foreign_too=True)
        self._producer = self.broker.producer()
        self._event_loop = asyncio.new_event_loop()
        closing.callback(self._event_loop.close)
        self._shared = self._open_shared(closing)
        self._http = http or self._open_http(closing)
        self._sinks: dict[str, MemorySink] = {}
        self._filed = {route.stage: FiledInMemory() for route in self._routes}
        self._loops: list[Loop] = [self._loop(stage) for stage in pipeline.stages]
        retried = [route for route in self._routes if route.tiers]
        if retried:
            group = pipeline.scheduler_group
            doors = self._doors(group)
            self._loops.append(Redelivery(pipeline.name, group, retried, doors, keep=self._keep))
        for loop in self._loops:
            loop.start()
        self.settle()

    def send(
        self,
        topic: str,
        value: object,
        *,
        key: str | bytes | None = None,
        headers: Mapping[str, str | bytes] | Sequence[Header] = (),
    ) -> None:
        """As another system would; a model, dataclass or dict is written as JSON."""
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        written = [(name, encode(text)) for name, text in pairs]
        self._producer.send(Record(encode(value), encode(key), written, topic))
        for report in self._producer.poll(0):
            if report.error is not None:
                raise report.error
        self.settle()

    def advance(self, duration: float | str) -> None:
        """Let time pass, and everything happen that is due in it."""
        remaining = seconds(duration)
        while remaining > 0:
            self.clock.advance(min(TICK_SECONDS, remaining))
            remaining -= TICK_SECONDS
            self.settle()

    def settle(self) -> None:
        """Step until nothing changes any more."""
        quiet = 0
        for _ in range(ROUNDS_MAX):
            before = self._progress()
            for loop in self._loops:
                loop.step(self.clock.monotonic())
            quiet = quiet + 1 if self._progress() == before else 0
            if quiet >= QUIET_ROUNDS:
                return
        raise AssertionError(f"{self._pipeline.name} does not come to rest: does it feed itself?")

    def sent(self, topic: str) -> list[Any]:
        """The values on a topic: what JSON says, else text, else bytes."""
        return [plain(record.value) for record in self.records(topic)]

    def records(self, topic: str) -> list[Record]:
        """What is on a topic, with the user's own headers."""
        return [
            record._replace(headers=user_headers(record.headers)) for record in self._all(topic)
        ]

    def rows(self, sink: str) -> list[Any]:
        return list(self._sinks[sink].rows)

    @property
    def dead_letters(self) -> list[Buried]:
        return [
            buried
            for route in self._routes
            for record in self._buried_by(route)
            if (buried := _buried(route.stage, record))
        ]

    def committed(self, stage: str) -> dict[TopicPartition, int]:
        """Where a stage would go on."""
        (route,) = (route for route in self._routes if route.stage == stage)
        positions = self.broker.admin().describe_group(route.group).positions
        return {known.partition: known.committed.offset for known in positions if known.committed}

    def _loop(self, stage: RecordStage | SinkStage) -> Loop:
        return (
            self._record_loop(stage) if isinstance(stage, RecordStage) else self._sink_loop(stage)
        )

    def _record_loop(self, stage: RecordStage) -> StageLoop:
        route = self._pipeline.route(stage)
        surroundings = Surroundings(
            self._pipeline.name,
            stage.name,
            route.group,
            self.clock,
            shared=self._shared,
            http=self._http,
        )
        function = inspect_function(stage.run)
        handler = Handler(function, surroundings, stage.retry, stage.stops_on)
        executor = (
            OneByOne(handler, self._event_loop) if function.is_async else InlineExecutor(handler)
        )
        place = None if route.dead_letter_topic else self._filed[route.stage]
        destination = Destination(route, stage.retry, stage.when_dead_lettered, place)
        options = LoopOptions(commits_when_idle_after_seconds=0.0)
        doors, hooks = self._doors(route.group), hooks_of(stage, self._shared)
        return StageLoop(stage, destination, doors, executor, options, hooks=hooks)

    def _sink_loop(self, stage: SinkStage) -> SinkLoop:
        route = self._pipeline.route(stage)
        sink = self._sinks[stage.name] = MemorySink()
        plan = sink_plan(self._pipeline, stage)
        options = LoopOptions(commits_when_idle_after_seconds=0.0)
        doors = self._doors(route.group)
        return SinkLoop(plan, sink, InlineSinkWriter(sink), doors, options)

    def _keep(self, route: Route, letter: DeadLetter) -> None:
        self._filed[route.stage].write([letter])

    def _buried_by(self, route: Route) -> list[Record]:
        there = self._all(route.dead_letter_topic) if route.dead_letter_topic else []
        return [*there, *self._filed[route.stage].records]

    def _doors(self, group: str) -> Doors:
        """The consumer last, for it is closed first and may commit what was sent."""
        producer = self.broker.producer()
        return Doors(self.broker.consumer(group), producer, self.broker.admin(), self.clock)

    def _open_shared(self, closing: ExitStack) -> dict[str, Any]:
        stack = AsyncExitStack()
        closing.callback(lambda: self._event_loop.run_until_complete(stack.aclose()))
        opened: dict[str, Any] = {}
        for name, opens in self._pipeline.shared.items():
            manager: Any = opens()
            if hasattr(manager, "__aenter__"):
                entering = stack.enter_async_context(manager)
                opened[name] = self._event_loop.run_until_complete(entering)
            else:
                opened[name] = stack.enter_context(manager)
        return opened

    def _open_http(self, closing: ExitStack) -> Any:
        client = http_client(self._pipeline, self.clock, silent)
        if client is not None:
            closing.callback(lambda: self._event_loop.run_until_complete(client.close()))
        return client

    def _progress(self) -> object:
        healths = [loop.health(self.clock.monotonic()) for loop in self._loops]
        return [
            (health.counters["delivered"], health.counters["handled"], health.unresolved)
            for health in healths
        ]

    def _all(self, topic: str) -> list[Record]:
        (described,) = self.broker.admin().describe_topics([topic])
        places = [TopicPartition(topic, number) for number in range(described.partitions)]
        consumer = self.broker.consumer(None)
        consumer.assign(dict.fromkeys(places, 0))
        records: list[Record] = []
        while taken := consumer.poll(0):
            records += taken
        consumer.close()
        return records


class FiledInMemory:
    """What would be in a file of dead letters."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def write(self, letters: Sequence[DeadLetter]) -> None:
        for letter in letters:
            headers = seal(letter.record, letter.envelope)
            self.records.append(letter.record._replace(headers=headers))

    def close(self) -> None:
        """Nothing is open."""


class OneByOne(InlineExecutor):
    """Async functions on a loop of the test's own, each to its end before the next."""

    def __init__(self, handler: Handler, event_loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(handler)
        self._async_handler = handler
        self._event_loop = event_loop
        self.finished: deque[Finished] = deque()

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        for lane in lanes:
            while lane.waiting:
                work = lane.waiting.popleft()
                self._event_loop.run_until_complete(self._async_handler.run_async(work))
                self.finished.append(Finished(lane, work, is_end_of_lane=not lane.waiting))


def plain(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        pass
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _buried(stage: str, record: Record) -> Buried | None:
    envelope = read_envelope(record)
    if envelope is None or envelope.failure is None or read_marker(record) is not None:
        return None
    source = record._replace(headers=user_headers(record.headers))
    return Buried(stage, source, envelope.failure, envelope.attempt)
