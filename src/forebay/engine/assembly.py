"""Builds the loops of a pipeline over a broker. Which adapters, others have decided."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forebay.broker.port import Broker, Producer
from forebay.broker.settings import ConsumerSettings, ProducerSettings
from forebay.core.batches import BatchRule
from forebay.core.clock import Clock
from forebay.core.errors import Unusable
from forebay.core.outcomes import Reject, Skip
from forebay.core.records import Record
from forebay.core.retries import RetryPolicy
from forebay.core.sinks import Sink
from forebay.engine.context import Surroundings
from forebay.engine.dead_letters import DeadLetter, LetterFile, Spill
from forebay.engine.dev_mode import (
    ShowingProducer,
    ShowingSink,
    Shown,
    positions_by_hand,
    without_files,
)
from forebay.engine.doors import Doors, ExpiredRange, LoopOptions, told_by_events_alone
from forebay.engine.event_loop import AsyncExecutor, EventLoop
from forebay.engine.executors import Executor, InlineExecutor, ThreadExecutor
from forebay.engine.functions import inspect_function
from forebay.engine.handling import Handler
from forebay.engine.hooks import hooks_of
from forebay.engine.ledger_rows import StageName
from forebay.engine.loop import StageLoop
from forebay.engine.payloads import row_values
from forebay.engine.pipeline import Pipeline
from forebay.engine.redelivery import Keep, Redelivery
from forebay.engine.routes import LEDGER, SCHEDULER, Route
from forebay.engine.settler import Destination
from forebay.engine.sink_loop import SinkLoop, SinkPlan
from forebay.engine.sink_writer import ThreadSinkWriter, TurnTaking
from forebay.engine.stages import RecordStage, SinkStage, StartAt
from forebay.engine.threads import LoopThread
from forebay.observability.catalogue import Emit

if TYPE_CHECKING:
    from forebay.outbound.http import HttpClient

LEDGER_BATCH = BatchRule(records=500, seconds=0.5)
NO_RETRIES = RetryPolicy(())


def _no_spill(_pipeline: Pipeline) -> Spill | None:
    return None


@dataclass(frozen=True, slots=True)
class Site:
    """Where a pipeline runs. `open_ledger` None: nobody keeps a ledger here."""

    broker: Broker
    clock: Clock
    emit: Emit
    open_sink: Callable[[Pipeline, SinkStage], Sink[Any]]
    open_letter_file: Callable[[Path], LetterFile]
    open_ledger: Callable[[Pipeline], Sink[Any]] | None = None
    open_spill: Callable[[Pipeline], Spill | None] = _no_spill
    expired: Callable[[ExpiredRange], None] = told_by_events_alone
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
    producer: ProducerSettings = field(default_factory=ProducerSettings)


class Assembly:
    """Every method gives a thread that is not started yet.

    With `show` nothing is sent, stored or committed: it is told what would be.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        site: Site,
        options: LoopOptions,
        event_loop: EventLoop,
        show: Shown | None = None,
        *,
        http: "HttpClient | None" = None,
    ) -> None:
        self._show = show
        self._http = http
        self._pipeline = pipeline
        self._site = site
        self._options = options
        self._event_loop = event_loop

    def record_stage(self, stage: RecordStage, shared: Mapping[str, Any]) -> LoopThread:
        route = self._pipeline.route(stage)
        if self._show is not None:
            route = without_files(route)

        def build(closing: ExitStack) -> StageLoop:
            surroundings = Surroundings(
                self._pipeline.name,
                stage.name,
                route.group,
                self._site.clock,
                self._site.emit,
                shared,
                self._http,
            )
            handler = Handler(
                inspect_function(stage.run), surroundings, stage.retry, stage.stops_on
            )
            doors = self._doors(route, route.group, closing)
            executor = self._executor(stage, handler)
            closing.callback(executor.close)
            destination = self._destination(stage, route, closing)
            options = self._options_for(route, stage.start_at)
            hooks = hooks_of(stage, shared)
            return StageLoop(stage, destination, doors, executor, options, hooks=hooks)

        return LoopThread(route.worker, build, self._site.clock)

    def scheduler(self, routes: tuple[Route, ...]) -> LoopThread:
        pipeline = self._pipeline
        name = f"{pipeline.name}-{SCHEDULER}"

        def build(closing: ExitStack) -> Redelivery:
            group = pipeline.scheduler_group
            doors = self._doors(None, group, closing)
            keep = self._keeper(routes, closing)
            return Redelivery(pipeline.name, group, routes, doors, keep=keep)

        return LoopThread(name, build, self._site.clock)

    def _keeper(self, routes: tuple[Route, ...], closing: ExitStack) -> Keep:
        """For retries that can neither go back nor be a record of a dead-letter topic."""
        files: dict[Path, LetterFile] = {}
        for path in {
            route.dead_letters for route in routes if isinstance(route.dead_letters, Path)
        }:
            files[path] = self._site.open_letter_file(path)
            closing.callback(files[path].close)
        spill = self._site.open_spill(self._pipeline)

        def keep(route: Route, letter: DeadLetter) -> None:
            if isinstance(route.dead_letters, Path):
                files[route.dead_letters].write([letter])
            elif spill is not None:
                spill.keep(letter, route.dead_letters)
            else:
                raise Unusable(
                    f"{route.dead_letters} takes no record as large as a dead letter of "
                    f"{route.worker}. It is held. Raise the topic's limit, or run where the "
                    f"ledger is."
                )

        return keep

    def sink_stage(self, stage: SinkStage) -> LoopThread:
        plan = sink_plan(self._pipeline, stage, self._site.open_spill(self._pipeline))
        return self._sink(plan, lambda: self._site.open_sink(self._pipeline, stage))

    def ledger(self, open_ledger: Callable[[Pipeline], Sink[Any]]) -> LoopThread:
        """Reads the dead letters of all stages into the ledger."""
        pipeline = self._pipeline
        topics = tuple(
            dict.fromkeys(
                route.dead_letter_topic for route in pipeline.routes if route.dead_letter_topic
            )
        )
        route = Route(pipeline.name, LEDGER, pipeline.ledger_group, topics, {}, (), topics[0])
        plan = SinkPlan(
            make_row=_as_it_is, batch=LEDGER_BATCH, destination=Destination(route, NO_RETRIES)
        )
        return self._sink(plan, lambda: open_ledger(pipeline))

    def _sink(self, plan: SinkPlan, open_sink: Callable[[], Sink[Any]]) -> LoopThread:
        route = plan.destination.route

        def build(closing: ExitStack) -> SinkLoop:
            sink = TurnTaking(ShowingSink(route.stage, self._show) if self._show else open_sink())
            closing.callback(sink.close)
            writer = ThreadSinkWriter(sink, route.worker)
            closing.callback(writer.close)
            doors = self._doors(route, route.group, closing)
            options = self._options_for(route, "earliest")
            if self._pipeline.record_stages:  # a count is of what handlers are given
                options = replace(options, records_max=None)
            return SinkLoop(plan, sink, writer, doors, options)

        return LoopThread(route.worker, build, self._site.clock)

    def _doors(self, route: Route | None, group: str, closing: ExitStack) -> Doors:
        """The producer is there before partitions are, for its start takes a moment."""
        site, show = self._site, self._show
        producer: Producer = ShowingProducer(show) if show else site.broker.producer(site.producer)
        closing.callback(producer.close, 1.0)
        settings = replace(site.consumer, client_id=route.worker if route else group)
        consumer = site.broker.consumer(None if show else group, settings)
        closing.callback(consumer.close)
        return Doors(consumer, producer, site.broker.admin(), site.clock, site.emit, site.expired)

    def _options_for(self, route: Route, start_at: StartAt) -> LoopOptions:
        if self._show is None:
            return self._options
        places = positions_by_hand(self._site.broker.admin(), route, start_at)
        return replace(self._options, by_hand=places)

    def _executor(self, stage: RecordStage, handler: Handler) -> Executor:
        if stage.inline:
            return InlineExecutor(handler)
        if handler.is_async:
            return AsyncExecutor(handler, stage.concurrency, self._event_loop)
        return ThreadExecutor(handler, stage.concurrency, stage.name)

    def _destination(self, stage: RecordStage, route: Route, closing: ExitStack) -> Destination:
        letter_file = None
        if isinstance(route.dead_letters, Path):
            letter_file = self._site.open_letter_file(route.dead_letters)
            closing.callback(letter_file.close)
        return Destination(
            route,
            stage.retry,
            stage.when_dead_lettered,
            letter_file,
            self._site.open_spill(self._pipeline),
            stage.letter_batch,
        )


def sink_plan(pipeline: Pipeline, stage: SinkStage, spill: Spill | None = None) -> SinkPlan:
    shared_topics = {topic for other in pipeline.record_stages for topic in other.topics}
    return SinkPlan(
        make_row=row_maker(stage),
        batch=stage.batch,
        destination=Destination(pipeline.route(stage), NO_RETRIES, spill=spill),
        leaves_undecodable=bool(shared_topics & set(stage.topics)),
    )


def row_maker(stage: SinkStage) -> Callable[[Record], Any]:
    """The user's function, with what it wants and with what it gives as a row."""
    function = inspect_function(stage.row)

    def make(record: Record) -> Any:
        said = function.call(function.decode(record))
        return said if isinstance(said, Skip | Reject) else row_values(said)

    return make


def _as_it_is(record: Record) -> Record:
    return record


def ledger_stages(pipeline: Pipeline) -> dict[str, StageName]:
    """Whose dead letters a topic holds."""
    return {
        route.dead_letter_topic: StageName(pipeline.name, route.stage)
        for route in pipeline.routes
        if route.dead_letter_topic
    }
