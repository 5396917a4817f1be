"""forebay worker: one stage alone, as a deployment of its own runs it."""

import signal
import sys
import time
from dataclasses import dataclass, replace
from typing import Annotated

from typer import Argument, Option, Typer

from forebay import bootstrap
from forebay.cli.command import DONE, FOUND_A_PROBLEM, WorkingCommand
from forebay.cli.errors import WrongUse
from forebay.cli.loading import load_pipeline
from forebay.cli.output import remark
from forebay.cli.run import (
    DrainOption,
    HealthHostOption,
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
from forebay.settings import HealthSettings


@dataclass(frozen=True)
class Worker(WorkingCommand):
    reference: Reference
    stage: Annotated[
        str | None,
        Argument(
            metavar="[STAGE]",
            help="A stage's name, retry-scheduler or dlq-handler. Of a pipeline that Forebay "
            "brings, the worker's name says both: xact-download.",
        ),
    ] = None
    until: UntilOption = None
    drain: DrainOption = "30s"
    count: Annotated[
        int, Option("--count", metavar="N", min=1, help="So many processes, supervised.")
    ] = 1
    health_port: Annotated[
        int, Option("--health-port", metavar="PORT", help="For /health; 0 takes a free one.")
    ] = 0
    health_host: HealthHostOption = None

    def run(self) -> int:
        if self.stage is None:
            return self._named_by_worker().run()
        session = self.session()
        pipeline = load_pipeline(self.reference, session)
        if self.count > 1:
            return self._supervise(pipeline, self.stage)
        until = parse_until(self.until or ())
        options = LoopOptions(drain_seconds=duration_ms(self.drain) / 1000)
        with (
            session.broker() as broker,
            bootstrap.open_site(session.settings, broker, session.emit, part=self.stage) as site,
        ):
            prepare(pipeline, broker, foreign_too=session.owns_broker)
            run = PipelineRun(pipeline, site, part=self.stage, until=until, options=options)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: _ask_to_stop(run))
            session.tell_unused()
            remark(f"forebay worker · {pipeline.name}-{self.stage} · {broker.describe().sentence}")
            return self._watched(run, self.stage, session.settings.health)

    def _named_by_worker(self) -> "Worker":
        """`xact-download` is stage download of xact."""
        for domain in bootstrap.DOMAINS:
            stage = self.reference.removeprefix(f"{domain}-")
            if stage != self.reference:
                return replace(self, reference=domain, stage=stage)
        raise WrongUse(
            f"{self.reference} names no worker: write MODULE:PIPELINE STAGE, or the worker of a "
            f"pipeline that Forebay brings ({', '.join(bootstrap.DOMAINS)}), as xact-download."
        )

    def _supervise(self, pipeline: Pipeline, stage: str) -> int:
        check_part(pipeline, stage)
        check_copies(pipeline, stage, self.count)
        until = parse_until(self.until or ())
        check_until(until, self.count)
        asked = Run(
            broker=self.broker,
            folder=self.folder,
            as_json=self.as_json,
            log_level=self.log_level,
            log_format=self.log_format,
            config=self.config,
            development=self.development,
            no_tables=self.no_tables,
            reference=self.reference,
            until=self.until,
            drain=self.drain,
            health_port=self.health_port,
            health_host=self.health_host,
        )
        plans = [ChildPlan(stage, copy) for copy in range(self.count)]
        return supervise(asked, pipeline, until, plans)

    def _watched(self, run: PipelineRun, stage: str, health: HealthSettings) -> int:
        line = StatusLine(sys.stderr)

        def look() -> Vitals:
            return vitals(run.health(), [] if run.is_whole else [stage])

        with HealthServer(
            look, self.health_port or health.port, self.health_host or health.host
        ) as server:
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
