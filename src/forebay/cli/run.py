"""forebay run: a whole pipeline under supervision, until told to stop or out of work."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from typer import Argument, Option, Typer

from forebay.bootstrap import trial_kafka
from forebay.broker.port import Broker
from forebay.cli.child import written_suspicion
from forebay.cli.command import DONE, FOUND_A_PROBLEM, WorkingCommand
from forebay.cli.dev_mode import run_in_dev_mode
from forebay.cli.errors import WrongUse
from forebay.cli.explaining import explain
from forebay.cli.loading import load_pipeline
from forebay.cli.output import print_object, remark
from forebay.cli.positions import Place as Where
from forebay.cli.positions import look_at, now_ms, offsets_at, parse_place
from forebay.cli.status_line import StatusLine
from forebay.cli.times import duration_ms
from forebay.cli.until import parse_until
from forebay.core.errors import ForebayError
from forebay.core.records import Offset
from forebay.engine.health import StageHealth
from forebay.engine.idle import is_drained
from forebay.engine.pipeline import Pipeline
from forebay.engine.receipt import Receipt
from forebay.engine.routes import LEDGER, SCHEDULER
from forebay.engine.run import Until, readers_of
from forebay.engine.single_file import Place
from forebay.engine.supervision import ChildPlan, Supervisor
from forebay.engine.suspicion import Suspicion
from forebay.engine.topics import check_tiers, create_topics, plan_topics
from forebay.observability.health_server import HealthServer, Vitals
from forebay.settings import TrialKafka

LOOK_SECONDS = 0.05
LOOK_AT_BROKER_SECONDS = 0.3

Reference = Annotated[
    str, Argument(metavar="MODULE:PIPELINE", help="Where the pipeline is, as orders:orders.")
]
UntilOption = Annotated[
    list[str] | None,
    Option(
        "--until",
        metavar="WHAT",
        help="idle, count=N, for=10m, or TOPIC:PARTITION=OFFSET (not handled any more).",
    ),
]
DrainOption = Annotated[
    str, Option("--drain", metavar="TIME", help="How long what runs may take to end (30s).")
]

HealthHostOption = Annotated[
    str | None, Option("--health-host", metavar="HOST", help="0.0.0.0 lets other machines ask.")
]


@dataclass(frozen=True)
class Run(WorkingCommand):
    reference: Reference
    until: UntilOption = None
    count: Annotated[
        int, Option("--count", metavar="N", min=1, help="Processes for the record stages.")
    ] = 1
    isolate: Annotated[bool, Option("--isolate", help="A process of its own per stage.")] = False
    explain: Annotated[
        bool, Option("--explain", help="Show the declaration and its topics; start nothing.")
    ] = False
    create_topics: Annotated[
        bool, Option("--create-topics", help="Create topics that the pipeline does not own, too.")
    ] = False
    start: Annotated[
        str | None,
        Option(
            "--from",
            metavar="WHERE",
            help="Set where the record stages resume first: earliest, latest, an offset, or a "
            "time (2h, 2026-11-18). Sinks go on where they stand.",
        ),
    ] = None
    dev_mode: Annotated[
        bool,
        Option("--dev-mode", help="Show what would be sent and stored; send and commit nothing."),
    ] = False
    drain: DrainOption = "30s"
    health_port: Annotated[
        int, Option("--health-port", metavar="PORT", help="For /health; 0 takes a free one.")
    ] = 0
    health_host: HealthHostOption = None

    def run(self) -> int:
        pipeline = load_pipeline(self.reference, self.session())
        if self.explain:
            return explain(pipeline, as_json=self.as_json)
        until = parse_until(self.until or ())
        check_until(until, self.count)
        if self.dev_mode:
            return run_in_dev_mode(self, pipeline, until)
        plans = _plans(pipeline, self.count, isolate=self.isolate)
        return supervise(self, pipeline, until, plans)


def supervise(asked: Run, pipeline: Pipeline, until: Until, plans: Sequence[ChildPlan]) -> int:
    """Run children by these plans until they are done; gives the exit code."""
    with _lasting_broker(asked) as command:
        receipt, worst = _supervised(command, pipeline, until, plans)
    show(receipt, as_json=asked.as_json)
    return FOUND_A_PROBLEM if worst else DONE


def _supervised(
    command: Run, pipeline: Pipeline, until: Until, plans: Sequence[ChildPlan]
) -> tuple[Receipt, int]:
    session = command.session()
    with session.broker() as broker:
        prepare(pipeline, broker, foreign_too=session.owns_broker or command.create_topics)
        if command.start is not None:
            _move(pipeline, broker, parse_place(command.start))
        supervisor = Supervisor(
            plans,
            lambda plan, suspicion, status: _spawn(command, plan, suspicion, status),
            drain_seconds=duration_ms(command.drain) / 1000,
            look=lambda: behind(pipeline, broker),
            emit=session.emit,
        )
        session.tell_unused()
        signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
        signal.signal(signal.SIGINT, lambda *_: supervisor.stop())
        remark(f"forebay run · {pipeline.name}{_shown(plans)} · {broker.describe().sentence}")
        started_at = time.monotonic()
        line = StatusLine(sys.stderr)
        with HealthServer(
            lambda: vitals(supervisor.healths(), supervisor.absent),
            command.health_port or session.settings.health.port,
            command.health_host or session.settings.health.host,
        ) as server:
            remark(f"health {server.url}/health")
            try:
                supervisor.start()
                _watch(supervisor, _Ending(pipeline, broker, until, plans), line)
            finally:
                line.clear()
                supervisor.close()
        return supervisor.receipt(time.monotonic() - started_at), supervisor.worst


def _shown(plans: Sequence[ChildPlan]) -> str:
    return f" · {len(plans)} processes" if len(plans) > 2 else ""


@contextmanager
def _lasting_broker(command: Run) -> Iterator[Run]:
    """A trial Kafka is started once, here; the children are told where it is."""
    if not isinstance(command.session().settings.broker, TrialKafka):
        yield command
        return
    with trial_kafka() as servers:
        yield replace(command, broker=f"kafka://{servers}", create_topics=True)


def _spawn(
    command: Run, plan: ChildPlan, suspicion: Suspicion, status: int
) -> subprocess.Popen[bytes]:
    """With a leash, and a pipe to tell by."""
    return subprocess.Popen(
        child_command(command, plan, suspicion, status),
        stdin=subprocess.PIPE,
        pass_fds=(status,),
        process_group=0,  # a terminal's Ctrl-C is for the supervisor, which tells its children
    )


def child_command(command: Run, plan: ChildPlan, suspicion: Suspicion, status: int) -> list[str]:
    """The same options for a child."""
    options = {
        "--broker": command.broker,
        "--dir": str(command.folder) if command.folder else None,
        "--log-level": command.log_level,
        "--log-format": command.log_format,
        "--config": str(command.config) if command.config else None,
        "--part": plan.part,
        "--status-descriptor": str(status),
        "--single-file": written_suspicion(suspicion),
        "--drain-seconds": str(duration_ms(command.drain) / 1000),
    }
    words = [word for name, value in options.items() if value for word in (name, value)]
    words += ["--dev"] * command.development + ["--no-delta"] * command.no_tables
    for text in command.until or ():
        if not (text == "idle" or text.startswith("for=")):  # those the parent sees
            words += ["--until", text]
    return [sys.executable, "-m", "forebay", "child", command.reference, *words]


class _Ending:
    """Whether the run has done what it was started for."""

    def __init__(
        self, pipeline: Pipeline, broker: Broker, until: Until, plans: Sequence[ChildPlan]
    ) -> None:
        parts = {plan.part for plan in plans}
        self._readers = [
            (group, topic)
            for part, group, topic in readers_of(pipeline)
            if part in parts or group.removeprefix(f"{pipeline.group_prefix}-") in parts
        ]
        self._broker = broker
        self._until = until
        self._started_at = time.monotonic()
        self._looked_at = 0.0

    def has_come(self, supervisor: Supervisor, now: float) -> bool:
        if self._until.seconds is not None and now - self._started_at >= self._until.seconds:
            return True
        if not self._until.idle or not supervisor.is_idle:
            return False
        if now - self._looked_at < LOOK_AT_BROKER_SECONDS:
            return False
        self._looked_at = now
        try:
            return is_drained(self._broker.admin(), self._readers)
        except ForebayError:
            return False  # a broker that is away has not been read to its end


def _move(pipeline: Pipeline, broker: Broker, place: Where) -> None:
    """Only their inputs: what waits to come back is not touched."""
    for stage in pipeline.record_stages:
        group = pipeline.route(stage).group
        for topic in stage.topics:
            _, held = look_at(broker.admin(), topic)
            offsets = offsets_at(broker, held, place)
            broker.admin().reset_offsets(group, offsets)
            told = ", ".join(f"{at} {offset}" for at, offset in sorted(offsets.items()))
            remark(f"{group} resumes at {told}")


def behind(pipeline: Pipeline, broker: Broker) -> dict[Place, Offset]:
    """Partitions of record stages with records left. A broker that is away tells of none."""
    left: dict[Place, Offset] = {}
    for stage in pipeline.record_stages:
        group = pipeline.route(stage).group
        try:
            positions = broker.admin().describe_group(group).positions
        except ForebayError:
            continue
        for position in positions:
            if position.lag and position.committed:
                left[Place(group, *position.partition)] = position.committed.offset
    return left


def _watch(supervisor: Supervisor, ending: _Ending, line: StatusLine) -> None:
    while not supervisor.is_over:
        now = time.monotonic()
        supervisor.step(now)
        if not supervisor.is_stopping and ending.has_come(supervisor, now):
            supervisor.stop()
        line.show(supervisor.healths(), now)
        time.sleep(LOOK_SECONDS)


def _plans(pipeline: Pipeline, count: int, *, isolate: bool) -> list[ChildPlan]:
    parts: list[ChildPlan] = []
    if isolate:
        names = [stage.name for stage in pipeline.record_stages]
        parts = [ChildPlan(name, copy) for name in names for copy in range(count)]
        parts += [ChildPlan(stage.name) for stage in pipeline.sink_stages]
        if any(route.tiers for route in pipeline.routes):
            parts.append(ChildPlan(SCHEDULER))
        if any(route.dead_letter_topic for route in pipeline.routes):
            parts.append(ChildPlan(LEDGER))
        return parts
    if pipeline.record_stages:
        parts = [ChildPlan("records", copy) for copy in range(count)]
    if pipeline.sink_stages or any(route.dead_letter_topic for route in pipeline.routes):
        parts.append(ChildPlan("sinks"))
    return parts


def check_until(until: Until, count: int) -> None:
    if count > 1 and (until.records is not None or until.stops):
        raise WrongUse("--until count=N or an offset is seen by one process; leave --count out.")


def prepare(pipeline: Pipeline, broker: Broker, *, foreign_too: bool) -> None:
    created = create_topics(broker.admin(), plan_topics(pipeline), foreign_too=foreign_too)
    check_tiers(broker.admin(), pipeline)
    if created:
        remark(f"created {', '.join(created)}")


def show(receipt: Receipt, *, as_json: bool) -> None:
    remark(receipt.sentence(now_ms()))
    if as_json:
        print_object(receipt.as_object())


def vitals(healths: Sequence[StageHealth], absent: Sequence[str] = ()) -> Vitals:
    """Alive while somebody answers; ready while nothing keeps a stage from its work."""
    is_ready = bool(healths) and not absent and all(health.is_well for health in healths)
    stages = [health.as_object() for health in healths]
    body = {"ready": is_ready, "absent": list(absent), "stages": stages}
    return Vitals(is_live=True, is_ready=is_ready, body=body)


def add_run_command(app: Typer) -> None:
    app.command(
        "run",
        help="Run a pipeline: its stages, its retries, its tables and its dead letters.\n\n"
        "forebay run orders:orders --until idle",
    )(Run)
