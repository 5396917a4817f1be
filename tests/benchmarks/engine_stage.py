"""A stage as `forebay worker` runs it, on a broker that is there, with its counters in reach."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay.bootstrap import open_broker, open_emitter, open_site
from forebay.broker.port import Broker
from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.engine.assembly import Site
from forebay.engine.loop import StageLoop
from forebay.engine.pipeline import Pipeline, record_stage
from forebay.engine.run import PipelineRun
from forebay.engine.stages import Topic
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import Emit, silent
from forebay.observability.settings import LogSettings
from forebay.settings import Settings, StorageSettings

STAGE = "measured"
PARTITIONS = 4
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True)
class Declared:
    """A pipeline owns its topic, so every record is looked through for our headers."""

    name: str
    topic: str
    run: Callable[..., Any]
    partitions: int = PARTITIONS
    order_by: str = "key"
    options: dict[str, Any] = field(default_factory=dict)

    def pipeline(self) -> Pipeline:
        options = {"retry": ["5m"], "concurrency": 50, **self.options}
        stage = record_stage(self.topic, self.run, name=STAGE, order_by=self.order_by, **options)
        return Pipeline(self.name, topics=[Topic(self.topic, self.partitions)], stages=[stage])


@contextmanager
def site_on(bootstrap: str | None, *, says_all: bool = False) -> Iterator[Site]:
    """Embedded where there is no Kafka. `says_all`: the emitter writes all lines into a file."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="forebay-bench-")))
        log = LogSettings(level="debug", format="json")
        emit: Emit = silent
        if says_all:
            lines = closing.enter_context((folder / "log.ndjson").open("w"))
            emit = open_emitter(log, lines)
        where = KafkaSettings(bootstrap) if bootstrap else EmbeddedSettings(folder / "broker")
        settings = Settings(folder, where, log, StorageSettings(folder))
        broker = open_broker(where, emit)
        closing.callback(broker.close)
        yield closing.enter_context(open_site(settings, broker, emit))


@contextmanager
def running(pipeline: Pipeline, site: Site, *, part: str = STAGE) -> Iterator[StageLoop]:
    """From the moment its partitions are assigned."""
    prepare(pipeline, site.broker)
    run = PipelineRun(pipeline, site, part=part)
    run.start()
    try:
        wait_until(lambda: run.failure is not None or _is_assigned(run), "partitions")
        yield _stage_loop(run)
        if run.failure is not None:
            raise run.failure
    finally:
        run.stop(within_seconds=5.0)
        run.close()


def prepare(pipeline: Pipeline, broker: Broker) -> None:
    create_topics(broker.admin(), plan_topics(pipeline), foreign_too=True)


def wait_until(met: Callable[[], bool], what: str, look_seconds: float = 0.01) -> None:
    """A look a hundred times a second costs next to nothing."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not met():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {DEADLINE_SECONDS:g} s")
        time.sleep(look_seconds)


def _stage_loop(run: PipelineRun) -> StageLoop:
    loop = run._threads[0].loop
    assert isinstance(loop, StageLoop)
    return loop


def _is_assigned(run: PipelineRun) -> bool:
    loop = run._threads[0].loop
    return isinstance(loop, StageLoop) and len(loop.held) > 0
