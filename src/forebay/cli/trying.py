"""forebay try: the last real records through a pipeline's functions; nothing is sent or kept."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

from typer import Argument, Option, Typer

from forebay.broker.port import Broker
from forebay.cli.command import DONE, Command
from forebay.cli.errors import WrongUse
from forebay.cli.filters import Bounds, Filter
from forebay.cli.loading import load_pipeline
from forebay.cli.output import Table, print_table, remark
from forebay.cli.payload import one_line
from forebay.cli.positions import look_at
from forebay.cli.reading import records
from forebay.cli.run import Reference
from forebay.core.errors import UnknownTopic
from forebay.core.failures import Failure, is_tried_again
from forebay.core.outcomes import Done, Reject, Retry, Skip
from forebay.core.records import Record
from forebay.engine.assembly import row_maker
from forebay.engine.context import Surroundings
from forebay.engine.event_loop import EventLoop
from forebay.engine.functions import inspect_function
from forebay.engine.handling import Handler
from forebay.engine.lifespan import Lifespan
from forebay.engine.outside import open_http
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import RecordStage, SinkStage, Stage
from forebay.engine.work import HeldPartition, Result, Stop, Work
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock

DETAIL_LENGTH_MAX = 100
KEY_LENGTH_MAX = 24


@dataclass(frozen=True)
class Try(Command):
    reference: Reference
    stage: Annotated[str | None, Argument(metavar="[STAGE]", help="Only this one.")] = None
    last: Annotated[
        int, Option("--last", metavar="N", min=1, help="How many records of each topic.")
    ] = 20

    def run(self) -> int:
        pipeline = load_pipeline(self.reference, self.session())
        stages = _chosen(pipeline, self.stage)
        with self.session().broker() as broker, ExitStack() as closing:
            trial = Trial(pipeline, closing)
            rows = [
                row
                for stage in stages
                for record in _newest(broker, stage, self.last)
                for row in [trial.row(stage, record)]
            ]
        heads = ("stage", "record", "key", "outcome", "detail", "ms")
        print_table(Table(heads, rows), as_json=self.as_json, empty="The topics hold no record.")
        if rows:
            remark(f"{len(rows)} records tried. Nothing was sent, stored or committed.")
        return DONE


class Trial:
    """Functions are called as `run` calls them, with what they share open."""

    def __init__(self, pipeline: Pipeline, closing: ExitStack) -> None:
        self._pipeline = pipeline
        self._event_loop = EventLoop()
        closing.callback(self._event_loop.close)
        things = Lifespan(pipeline, self._event_loop)
        self._shared: Mapping[str, Any] = things.open() if pipeline.record_stages else {}
        closing.callback(things.close)
        self._clock = SystemClock()
        outside = open_http(pipeline, self._clock, silent, self._event_loop)
        self._http = closing.enter_context(outside)

    def row(self, stage: Stage, record: Record) -> tuple[object, ...]:
        begun = time.perf_counter()
        if isinstance(stage, SinkStage):
            outcome, detail = _row_outcome(stage, record)
        else:
            outcome, detail = _told(self._handle(stage, record))
        took_ms = round((time.perf_counter() - begun) * 1000, 1)
        place = f"{record.at}@{record.offset}"
        key = one_line(record.key, KEY_LENGTH_MAX)
        return stage.name, place, key, outcome, detail[:DETAIL_LENGTH_MAX], took_ms

    def _handle(self, stage: RecordStage, record: Record) -> Work:
        function = inspect_function(stage.run)
        surroundings = Surroundings(
            self._pipeline.name,
            stage.name,
            self._pipeline.route(stage).group,
            self._clock,
            shared=self._shared,
            http=self._http,
        )
        handler = Handler(function, surroundings, stage.retry, stage.stops_on)
        work = Work(record, HeldPartition(record.at, record.offset, 0.0), 0)
        if function.is_async:
            self._event_loop.run(handler.run_async(work), stage.timeout_seconds)
        else:
            handler.run(work)
        return work


def _chosen(pipeline: Pipeline, name: str | None) -> list[Stage]:
    stages = [stage for stage in pipeline.stages if name in {None, stage.name}]
    if not stages:
        names = ", ".join(stage.name for stage in pipeline.stages)
        raise WrongUse(f"Pipeline {pipeline.name} has no stage {name}; it has {names}.")
    return stages


def _newest(broker: Broker, stage: Stage, last: int) -> Iterator[Record]:
    for topic in stage.topics:
        try:
            _, held = look_at(broker.admin(), topic)
        except UnknownTopic:
            remark(f"{stage.name} reads {topic}, which does not exist yet.")
            continue
        yield from records(broker, held, Filter(), Bounds(last=last))


def _row_outcome(stage: SinkStage, record: Record) -> tuple[str, str]:
    try:
        row = row_maker(stage)(record)
    except Exception as error:  # noqa: BLE001  the user's function: its failure is what is shown
        return "dead letter", f"{type(error).__name__}: {error}"
    if isinstance(row, Skip):
        return "skipped", row.reason
    return "row", ", ".join(f"{name}={value!r}" for name, value in row.items())


def _told(work: Work) -> tuple[str, str]:
    result: Result | None = work.result
    match result:
        case Done():
            emitted = work.outputs or []
            shown = [f"{output.topic}: {one_line(output.value, 60)}" for output in emitted]
            return "done", "; ".join(shown)
        case Skip(reason=reason):
            return "skipped", reason
        case Retry(reason=reason) | Reject(reason=reason) | Failure(reason=reason):
            return ("retry" if _is_retried(result) else "dead letter"), reason
        case Stop(error=error):
            return "stops the stage", f"{type(error).__name__}: {error}"
        case _:
            return "nothing", "the handler left no result"


def _is_retried(result: Retry | Reject | Failure) -> bool:
    if isinstance(result, Failure):
        return is_tried_again(result.category)
    return isinstance(result, Retry)


def add_try_command(app: Typer) -> None:
    app.command(
        "try",
        help="Run the last records through the functions; join no group, commit nothing.\n\n"
        "forebay try orders:orders --last 20",
    )(Try)
