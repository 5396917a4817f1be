"""forebay worker: one stage alone, as a deployment of its own runs it."""

import signal
import sys
import time
from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option, Typer

from forebay import bootstrap
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command
from forebay.cli.loading import load_pipeline
from forebay.cli.output import remark
from forebay.cli.run import (
    DrainOption,
    Reference,
    Run,
    UntilOption,
    check_until,
    prepare,
    show,
    supervise,
    vitals,
)
from forebay.cli.status_line import StatusLine
from forebay.cli.times import duration_ms
from forebay.cli.until import parse_until
from forebay.engine.doors import LoopOptions
from forebay.engine.pipeline import Pipeline
from forebay.engine.run import PipelineRun, check_copies, check_part
from forebay.engine.supervision import ChildPlan
from forebay.observability.health_server import HealthServer, Vitals


@dataclass(frozen=True)
class Worker(Command):
    reference: Reference
    stage: Annotated[
        str,
        Argument(metavar="STAGE", help="A stage's name, retry-scheduler or dlq-handler."),
    ]
    until: UntilOption = None
    drain: DrainOption = "30s"
    count: Annotated[
        int, Option("--count", metavar="N", min=1, help="So many processes, supervised.")
    ] = 1
    health_port: Annotated[
        int, Option("--health-port", metavar="PORT", help="For /health; 0 takes a free one.")
    ] = 0
    health_host: Annotated[
        str, Option("--health-host", metavar="HOST", help="0.0.0.0 lets other machines ask.")
    ] = "127.0.0.1"

    def run(self) -> int:
        pipeline = load_pipeline(self.reference)
        if self.count > 1:
            return self._supervise(pipeline)
        session = self.session()
        until = parse_until(self.until or ())
        options = LoopOptions(drain_seconds=duration_ms(self.drain) / 1000)
        with (
            session.broker() as broker,
            bootstrap.open_site(session.settings, broker, session.emit) as site,
        ):
            prepare(pipeline, broker, foreign_too=session.owns_broker)
            run = PipelineRun(pipeline, site, part=self.stage, until=until, options=options)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: _ask_to_stop(run))
            remark(f"forebay worker · {pipeline.name}-{self.stage} · {broker.describe().sentence}")
            return self._watched(run)

    def _supervise(self, pipeline: Pipeline) -> int:
        check_part(pipeline, self.stage)
        check_copies(pipeline, self.stage, self.count)
        until = parse_until(self.until or ())
        check_until(until, self.count)
        asked = Run(
            broker=self.broker,
            folder=self.folder,
            as_json=self.as_json,
            log_level=self.log_level,
            log_format=self.log_format,
            reference=self.reference,
            until=self.until,
            drain=self.drain,
            health_port=self.health_port,
        )
        plans = [ChildPlan(self.stage, copy) for copy in range(self.count)]
        return supervise(asked, pipeline, until, plans)

    def _watched(self, run: PipelineRun) -> int:
        line = StatusLine(sys.stderr)

        def look() -> Vitals:
            return vitals(run.health(), [] if run.is_whole else [self.stage])

        with HealthServer(look, self.health_port, self.health_host) as server:
            remark(f"health {server.url}/health")
            run.start()
            while not run.wait():
                line.show(run.health(), time.monotonic())
            line.clear()
            receipt = run.close()
        show(receipt, as_json=self.as_json)
        if run.stopped_by is not None:
            remark(f"forebay: a handler stopped the stage: {run.stopped_by!r}")
            return FOUND_A_PROBLEM
        return FOUND_A_PROBLEM if receipt.left_behind else DONE


def _ask_to_stop(run: PipelineRun) -> None:
    """The second time nothing is waited for."""
    run.stop(0.0 if run.is_stopping else None)


def add_worker_command(app: Typer) -> None:
    app.command(
        "worker",
        help="Run one stage of a pipeline alone.\n\nforebay worker orders:orders charge",
    )(Worker)
