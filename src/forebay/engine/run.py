"""A pipeline, or a part of it, running in this process: one thread a loop."""

import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from forebay.core.errors import ForebayError, InvalidRequest
from forebay.core.records import Offset, TopicPartition
from forebay.engine.assembly import Assembly, Site
from forebay.engine.dev_mode import Shown
from forebay.engine.doors import LoopOptions
from forebay.engine.event_loop import EventLoop
from forebay.engine.health import StageHealth
from forebay.engine.idle import is_drained
from forebay.engine.lifespan import Lifespan
from forebay.engine.outside import open_http
from forebay.engine.pipeline import Pipeline
from forebay.engine.receipt import Receipt, receipt_of
from forebay.engine.routes import LEDGER, SCHEDULER
from forebay.engine.stages import RecordStage, RowFile, SinkStage
from forebay.engine.threads import LoopThread

SWITCH_SECONDS = 0.0005
LOOK_SECONDS = 0.05
LOOK_AT_BROKER_SECONDS = 0.2
EXIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Until:
    """When a run ends by itself. Nothing set: when it is told to."""

    idle: bool = False
    seconds: float | None = None
    records: int | None = None
    stops: Mapping[TopicPartition, Offset] | None = None


class PipelineRun:
    """`part`: all, records (with the scheduler), sinks (with the ledger), or one worker's name.

    With `show` it is dev mode: nothing is sent, stored or committed.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        site: Site,
        *,
        part: str = "all",
        until: Until | None = None,
        options: LoopOptions | None = None,
        show: Shown | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._show = show
        self._site = site
        self._part = part
        self._until = until or Until()
        self._limited = _workers_that_stop(pipeline, self._until)
        self._options = _with_until(options or LoopOptions(), self._until)
        self._threads: list[LoopThread] = []
        self._open = ExitStack()
        self._started_at = 0.0
        self._looked_at_broker = 0.0
        self._stop_deadline: float | None = None

    def start(self) -> None:
        """Blocking until what the handlers share is open."""
        check_part(self.pipeline, self._part)
        self._started_at = time.monotonic()
        with ExitStack() as opening:
            interval = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_SECONDS)
            opening.callback(sys.setswitchinterval, interval)
            event_loop = EventLoop()
            opening.callback(event_loop.close)
            things = Lifespan(self.pipeline, event_loop)
            shared: Mapping[str, Any] = {}
            if self._has_record_stages:
                shared = things.open()
                opening.callback(things.close)
            http = None
            if self._has_record_stages:
                site = self._site
                outside = open_http(self.pipeline, site.clock, site.emit, event_loop)
                http = opening.enter_context(outside)
            assembly = Assembly(
                self.pipeline, self._site, self._options, event_loop, self._show, http=http
            )
            self._threads = list(self._assemble(assembly, shared))
            self._open = opening.pop_all()
        for thread in self._threads:
            thread.start()

    def stop(self, within_seconds: float | None = None) -> None:
        """From any thread and from signal handlers. Drain, commit, then end."""
        seconds = self._options.drain_seconds if within_seconds is None else within_seconds
        self._stop_deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.stop(self._stop_deadline)

    def wait(self, timeout_seconds: float = LOOK_SECONDS) -> bool:
        """Look whether it is to end, or has ended; True when it has. Blocking that long."""
        alive = next((thread for thread in self._threads if thread.is_alive), None)
        if alive is None or (alive.join(timeout_seconds) and self.is_over):
            return True
        if self.failure is not None or self._is_to_end():
            self.stop()
        return self.is_over

    def close(self) -> Receipt:
        """Stop if it still runs, and say what was done. Raises what a loop has raised."""
        if not self.is_over and self._stop_deadline is None:
            self.stop()
        deadline = (self._stop_deadline or time.monotonic()) + EXIT_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._open.close()
        if self.failure is not None:
            raise self.failure
        seconds = time.monotonic() - self._started_at
        hung = sum(thread.is_alive for thread in self._threads)
        left_behind = hung + sum(t.loop.left_behind for t in self._threads if t.loop)
        return receipt_of(self.health(), seconds, left_behind)

    def run(self) -> Receipt:
        """Until it ends by itself or is told to stop by `stop`."""
        self.start()
        try:
            while not self.wait():
                pass
        finally:
            receipt = self.close()
        return receipt

    @property
    def is_over(self) -> bool:
        return all(not thread.is_alive for thread in self._threads)

    @property
    def is_stopping(self) -> bool:
        return self._stop_deadline is not None

    @property
    def is_whole(self) -> bool:
        """Every loop runs, or has ended well."""
        return self.failure is None and all(thread.health for thread in self._threads)

    @property
    def failure(self) -> BaseException | None:
        return next((thread.failure for thread in self._threads if thread.failure), None)

    @property
    def wants_restart(self) -> bool:
        return any(getattr(thread.loop, "wants_restart", False) for thread in self._threads)

    @property
    def stopped_by(self) -> BaseException | None:
        """What a handler raised that stopped its stage."""
        raised = (getattr(thread.loop, "stopped_by", None) for thread in self._threads)
        return next((error for error in raised if error), None)

    @property
    def is_idle(self) -> bool:
        """Every loop says so. What lies between them only the broker knows."""
        healths = self.health()
        return len(healths) == len(self._threads) and all(health.is_idle for health in healths)

    def health(self) -> list[StageHealth]:
        return [thread.health for thread in self._threads if thread.health is not None]

    @property
    def _has_record_stages(self) -> bool:
        return any(self._includes(stage.name, "records") for stage in self.pipeline.record_stages)

    def _includes(self, name: str, part: str) -> bool:
        return self._part in {"all", part, name}

    def _assemble(self, assembly: Assembly, shared: Mapping[str, Any]) -> Iterable[LoopThread]:
        for stage in self.pipeline.stages:
            if isinstance(stage, RecordStage) and self._includes(stage.name, "records"):
                yield assembly.record_stage(stage, shared)
            if isinstance(stage, SinkStage) and self._includes(stage.name, "sinks"):
                yield assembly.sink_stage(stage)
        retried = tuple(route for route in self.pipeline.routes if route.tiers)
        if retried and self._show is None and self._includes(SCHEDULER, "records"):
            yield assembly.scheduler(retried)
        open_ledger = self._site.open_ledger if self._show is None else None
        buried = any(route.dead_letter_topic for route in self.pipeline.routes)
        if buried and open_ledger is not None and self._includes(LEDGER, "sinks"):
            yield assembly.ledger(open_ledger)

    def _is_to_end(self) -> bool:
        if self._stop_deadline is not None:
            return False
        if self._has_ended_by_itself():
            return True
        now = time.monotonic()
        if self._until.seconds is not None and now - self._started_at >= self._until.seconds:
            return True
        if not self._until.idle or now - self._looked_at_broker < LOOK_AT_BROKER_SECONDS:
            return False
        self._looked_at_broker = now
        if self._show is not None:
            return self.is_idle  # what is not committed cannot be asked of the broker
        return self.is_idle and self._is_drained()

    def _has_ended_by_itself(self) -> bool:
        """Stages that were to end at an offset wait for each other."""
        stages = [thread for thread in self._threads if self._is_a_stage(thread)]
        limited = self._limited
        waits_for_others = {thread.name for thread in stages if not thread.is_over} & limited
        over = {thread.name for thread in stages if thread.is_over}
        if self.wants_restart or self.stopped_by is not None:
            return True
        return bool(over) and not (over <= limited and waits_for_others)

    def _is_drained(self) -> bool:
        """A broker that is away has not been read to its end."""
        try:
            return is_drained(self._site.broker.admin(), self._readers())
        except ForebayError:
            return False

    def _is_a_stage(self, thread: LoopThread) -> bool:
        return not thread.name.endswith((SCHEDULER, LEDGER))

    def _readers(self) -> list[tuple[str, str]]:
        return [
            (group, topic)
            for part, group, topic in readers_of(self.pipeline)
            if self._part in {"all", part} or group == f"{self.pipeline.group_prefix}-{self._part}"
            if group != self.pipeline.ledger_group or self._site.open_ledger is not None
        ]


def _workers_that_stop(pipeline: Pipeline, until: Until) -> set[str]:
    """Those that are to end at an offset."""
    topics = {at.topic for at in until.stops or ()}
    routes = pipeline.routes
    return {route.worker for route in routes if not topics.isdisjoint(route.inputs)}


def check_part(pipeline: Pipeline, part: str) -> None:
    """Raises InvalidRequest for what no process of this pipeline could run."""
    names = [*(stage.name for stage in pipeline.stages), SCHEDULER, LEDGER]
    if part not in {"all", "records", "sinks", *names}:
        raise InvalidRequest(
            f"Pipeline {pipeline.name} has no worker {part}; it has {', '.join(names)}."
        )


def check_copies(pipeline: Pipeline, part: str, count: int) -> None:
    """Raises InvalidRequest where several processes would write what has one writer."""
    if count > 1 and part in {LEDGER, "sinks"}:
        raise InvalidRequest(f"{part} is one process: its database has one. Leave --count out.")
    for stage in pipeline.sink_stages:
        is_one = isinstance(stage.target, RowFile) or (stage.key and not stage.keyed_by_record)
        if count > 1 and stage.name == part and is_one:
            raise InvalidRequest(
                f"Sink {part} is one process: a file has one writer, and rows of one key meet in "
                f"one. Leave --count out, or declare keyed_by_record=True where the records carry "
                f"the table's key as theirs."
            )


def readers_of(pipeline: Pipeline) -> list[tuple[str, str, str]]:
    """(part, group, topic) of everything a pipeline must have read before it is idle."""
    readers = []
    for stage in pipeline.stages:
        part = "records" if isinstance(stage, RecordStage) else "sinks"
        route = pipeline.route(stage)
        readers += [(part, route.group, topic) for topic in route.reads]
        if route.dead_letter_topic is not None:
            readers.append(("sinks", pipeline.ledger_group, route.dead_letter_topic))
    return readers


def _with_until(options: LoopOptions, until: Until) -> LoopOptions:
    quick = 0.05 if until.idle else options.commits_when_idle_after_seconds
    return replace(
        options,
        stops=until.stops or {},
        records_max=until.records,
        commits_when_idle_after_seconds=quick,
    )
