"""One process of the stage, as the engine runs in it, moved by hand."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from engine.simulation.doors import Crash, FaultyConsumer, FaultyProducer, LetterPlace, Surroundings
from engine.simulation.handlers import Script
from engine.simulation.oracle import Holding
from engine.simulation.scripted_executor import ScriptedExecutor
from forebay.core.records import TopicPartition
from forebay.engine.context import Surroundings as HandlerSurroundings
from forebay.engine.doors import Doors, ExpiredRange, LoopOptions
from forebay.engine.functions import inspect_function
from forebay.engine.handling import Handler
from forebay.engine.loop import StageLoop
from forebay.engine.routes import Route
from forebay.engine.settler import Destination
from forebay.engine.stages import RecordStage
from forebay.testing.memory import MemoryBroker


@dataclass(frozen=True, slots=True)
class Kinds:
    """What a run is made of; a planted fault replaces one of them."""

    loop: Callable[..., StageLoop] = StageLoop
    executor: Callable[..., ScriptedExecutor] = ScriptedExecutor


@dataclass(frozen=True, slots=True)
class Premises:
    """Where all members of a run work. `numbers` are those of calls."""

    broker: MemoryBroker
    stage: RecordStage
    route: Route
    numbers: "count[int]"
    kinds: Kinds


class Member:
    def __init__(self, premises: Premises, around: Surroundings) -> None:
        broker, stage, route = premises.broker, premises.stage, premises.route
        self.around = around
        self.holdings: dict[TopicPartition, Holding] = {}
        self.consumer = FaultyConsumer(broker.consumer(route.group), around, self.holdings)
        self.script = Script(around, premises.numbers, stage.order_by, stage.timeout_seconds or 0)
        surroundings = HandlerSurroundings("shop", stage.name, route.group, around.clock)
        function = inspect_function(self.script.handle)
        handler = Handler(function, surroundings, stage.retry, stage.stops_on)
        self._workers = stage.concurrency
        self.executor = premises.kinds.executor(
            handler, self.script, around.clock, around.chance, stage.concurrency
        )
        self.options = LoopOptions(
            drain_seconds=around.chance.choice((0.2, 2.0, 30.0)),
            supervised=around.chance.random() < 0.5,
        )
        doors = Doors(
            self.consumer,
            FaultyProducer(broker.producer(), around, self.holdings),
            broker.admin(),
            around.clock,
            emit=self._say,
            expired=self._expired,
        )
        place = LetterPlace(around, self.holdings)
        letter_file = None if route.dead_letter_topic else place
        hook = self.script.say_more if stage.when_dead_lettered else None
        destination = Destination(route, stage.retry, hook, letter_file, spill=place)
        self.loop = premises.kinds.loop(stage, destination, doors, self.executor, self.options)
        self.loop.start()
        self.is_gone = False
        self._must_end_by: float | None = None
        self._watermarks: dict[int, tuple[object, int]] = {}

    def move(self) -> None:
        """A turn of a worker, or a step of the engine and perhaps its rest."""
        chance = self.around.chance
        try:
            if chance.random() < 0.5:
                self.executor.turn()
                return
            self._step(rests=chance.random() < 0.7)
        except Crash:
            self.around.oracle.note(f"{self.around.name} crashes in a call")
            self.is_gone = True

    def settle_down(self) -> None:
        self.executor.run_all()
        self._step(rests=True)

    def stop(self, seconds: float) -> None:
        self.around.oracle.note(f"{self.around.name} is told to stop")
        self._must_end_by = self.around.clock.monotonic() + seconds
        self.script.has_stopped = True
        self.loop.stop(self._must_end_by)

    @property
    def is_stopping(self) -> bool:
        return self.loop.is_stopping

    def _step(self, *, rests: bool) -> None:
        loop, clock = self.loop, self.around.clock
        was_stopping = loop.is_stopping
        now = clock.monotonic()
        wait = loop.step(now)
        self._check()
        if loop.is_stopping and not was_stopping:
            self._notice_stop(clock.monotonic())
        if self._must_end_by is not None and now >= self._must_end_by:
            is_over = loop.is_over
            self.around.oracle.require(is_over, "S1: {} goes on after its time", self.around.name)
        if loop.is_over:
            self._leave()
        elif rests:
            loop.rest(wait)

    def _notice_stop(self, now: float) -> None:
        """It stopped by itself: a handler asked for it, or never returned."""
        self.script.has_stopped = True
        self._must_end_by = now + self.options.drain_seconds
        if self.loop.stopped_by is not None:
            self.around.faults.seen("handler_stopped")

    def _leave(self) -> None:
        self.around.oracle.note(f"{self.around.name} is over and leaves")
        self.is_gone = True
        self.consumer.close()

    def _check(self) -> None:
        oracle, loop = self.around.oracle, self.loop
        for held in loop.held:
            progress = held.progress
            _, before = self._watermarks.get(id(progress), (progress, 0))
            oracle.require(progress.watermark >= before, "T3: the watermark of {} fell", held.at)
            self._watermarks[id(progress)] = progress, progress.watermark
            out = sum(lane.holder is held for lane in loop._dispatch.out)
            told = held.handed_out
            oracle.require(out == told, "B6: {} of {} are out, counted {}", out, held.at, told)
            is_paused = self.consumer.inner._assigned.reader(held.at).paused
            same = held.is_paused == is_paused
            oracle.require(same, "L2: {} is paused={} at the broker", held.at, is_paused)
        unresolved = sum(held.progress.unresolved for held in loop.held)
        told = loop.held.records
        oracle.require(unresolved == told, "B6: {} are held, counted {}", unresolved, told)
        limit = loop.stage.bounds.records + 2
        oracle.require(told <= limit, "T6: {} are held, {} allowed", told, limit)

    def check_nothing_held(self) -> None:
        """B6: at rest every counter is at zero."""
        loop = self.loop
        counted = {
            "records": loop.held.records,
            "bytes": loop.held.bytes,
            "running": loop._dispatch.running,
            "stuck": len(loop._dispatch.stuck),
            "settling": loop._settler.open,
            "unsent": len(loop._settler._waiting),
            "lanes": sum(len(held.lanes) + len(held.ready) for held in loop.held),
            "of partitions": sum(held.settling + held.handed_out for held in loop.held),
            "paused": sum(held.is_paused for held in loop.held),
            "more workers": self.executor.workers - self._workers,
        }
        left = {name: value for name, value in counted.items() if value}
        self.around.oracle.require(
            not left, "B6: at rest {} still holds {}", self.around.name, left
        )

    def told(self) -> str:
        loop = self.loop
        held = [f"{held.at} from {held.progress.watermark}" for held in loop.held]
        return (
            f"{self.around.name}: running={loop._dispatch.running} "
            f"stuck={len(loop._dispatch.stuck)} open={loop._settler.open} "
            f"reasons={loop._reasons()} held={held}"
        )

    def _say(self, event: str, **fields: object) -> None:
        told = ", ".join(f"{name}={value}" for name, value in fields.items() if name != "reason")
        self.around.oracle.note("{}", f"{self.around.name} says {event} {told}")
        if event == "record.timed_out":
            self.around.faults.seen("timeout")

    def _expired(self, gone: ExpiredRange) -> None:
        self.around.faults.seen("expired")
        self.around.oracle.expired.append((gone.at, gone.from_offset, gone.to_offset))
