"""One child of `forebay run`: a part of a pipeline in a process of its own, on a leash."""

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Annotated

import orjson
from typer import Argument, Option, Typer

from forebay import bootstrap
from forebay.cli.command import WorkingCommand
from forebay.cli.loading import load_pipeline
from forebay.cli.output import remark
from forebay.cli.until import parse_until
from forebay.core.records import Offset
from forebay.engine.doors import LoopOptions
from forebay.engine.pipeline import Pipeline
from forebay.engine.run import PipelineRun
from forebay.engine.single_file import Named, Place, Reach, SingleFile
from forebay.engine.stages import RecordStage
from forebay.engine.supervision import (
    ASKS_FOR_RESTART,
    ENDED_LATE,
    ENDED_WELL,
    STOPPED_BY_HANDLER,
)
from forebay.engine.suspicion import Suspicion

STATUS_SECONDS = 0.2


@dataclass(frozen=True)
class RunChild(WorkingCommand):
    reference: Annotated[str, Argument(metavar="MODULE:PIPELINE")]
    part: Annotated[str, Option("--part")] = "all"
    status: Annotated[int, Option("--status-descriptor")] = -1
    until: Annotated[list[str] | None, Option("--until")] = None
    drain_seconds: Annotated[float, Option("--drain-seconds")] = 30.0
    single_file: Annotated[str | None, Option("--single-file")] = None

    def run(self) -> int:
        session = self.session()
        pipeline = load_pipeline(self.reference, session)
        until = parse_until(self.until or ())
        single_file = _single_file(self.single_file, pipeline, self.status)
        options = LoopOptions(
            supervised=True, drain_seconds=self.drain_seconds, single_file=single_file
        )
        with (
            session.broker() as broker,
            bootstrap.open_site(session.settings, broker, session.emit, part=self.part) as site,
        ):
            run = PipelineRun(pipeline, site, part=self.part, until=until, options=options)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; we are told
            signal.signal(signal.SIGTERM, lambda *_: run.stop())
            return _watched(run, self.status)


def written_suspicion(suspicion: Suspicion) -> str | None:
    """None where nobody is suspected."""
    if not suspicion.suspects:
        return None
    suspects = [[*place, offset] for place, offset in suspicion.suspects.items()]
    killers = [[*killer.place, killer.offset] for killer in suspicion.killers]
    return orjson.dumps({"suspects": suspects, "killers": killers}).decode()


def _single_file(written: str | None, pipeline: Pipeline, descriptor: int) -> SingleFile | None:
    if written is None:
        return None
    told = orjson.loads(written)
    stages = {pipeline.route(stage).group: stage for stage in pipeline.record_stages}
    suspects = {
        Place(group, topic, partition): _reach(stages[group], offset)
        for group, topic, partition, offset in told["suspects"]
        if group in stages
    }
    killers = [Named(Place(*place), offset) for *place, offset in told["killers"]]

    def tell(named: Named) -> None:
        os.write(descriptor, orjson.dumps({"named": [*named.place, named.offset]}) + b"\n")

    return SingleFile(suspects, killers, tell, time.monotonic())


def _reach(stage: RecordStage, offset: Offset) -> Reach:
    return Reach(offset + 2 * stage.concurrency, offset + 2 * stage.bounds.records)


def _watched(run: PipelineRun, descriptor: int) -> int:
    run.start()
    threading.Thread(target=_hold_the_leash, args=(run,), name="leash", daemon=True).start()
    told_at = 0.0
    while not run.wait():
        if time.monotonic() - told_at >= STATUS_SECONDS:
            told_at = time.monotonic()
            _tell(run, descriptor, 0)
    receipt = run.close()
    _tell(run, descriptor, receipt.left_behind)
    if run.wants_restart:
        return ASKS_FOR_RESTART
    if run.stopped_by is not None:
        remark(f"forebay: a handler stopped its stage: {run.stopped_by!r}")
        return STOPPED_BY_HANDLER
    return ENDED_LATE if receipt.left_behind else ENDED_WELL


def _tell(run: PipelineRun, descriptor: int, left_behind: int) -> None:
    healths = run.health()
    said = {
        "healths": healths,
        "is_idle": run.is_idle,
        "is_whole": run.is_whole,
        "left_behind": left_behind,
    }
    if descriptor < 0:
        return
    try:
        os.write(descriptor, orjson.dumps(said) + b"\n")
    except BrokenPipeError:
        if not run.is_stopping:  # who started us has gone: end as if asked
            run.stop()


def _hold_the_leash(run: PipelineRun) -> None:
    """Who started us has gone when our standard input ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    run.stop()


def add_child_command(app: Typer) -> None:
    app.command("child", hidden=True, help="A part of `forebay run`.")(RunChild)
