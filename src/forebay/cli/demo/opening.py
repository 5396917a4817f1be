"""Opens what a demo needs, in order: the world, a broker, topics, workers, and who watches them."""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from forebay import bootstrap
from forebay.bootstrap.xact import open_xact
from forebay.broker.port import Broker
from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.cli.demo.crew import Crew, Surroundings
from forebay.cli.demo.feeder import Feed, Feeder
from forebay.cli.demo.latest import Latest
from forebay.cli.demo.observer import Observer, Scene
from forebay.cli.demo.place import (
    BATCH_SECONDS,
    CIRCUIT_SECONDS,
    FILE_BYTES_MAX,
    RETRY_SECONDS,
    environment_for,
    write_settings,
)
from forebay.cli.demo.story import Cast
from forebay.cli.demo.wish import Wish
from forebay.cli.demo.world import World, open_world
from forebay.cli.errors import WrongUse
from forebay.cli.run import Run
from forebay.core.errors import Unusable
from forebay.domains.xact.settings import DOMAIN, XactTopics
from forebay.domains.xact.tables import ATTACHMENTS
from forebay.engine.pipeline import Pipeline
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.settings import EventHubs, Flags, Settings, TrialKafka, read_settings
from forebay.simulator.scenarios import scenario_named

LOG_NAME = "workers.log"


@dataclass(frozen=True, slots=True)
class Opened:
    settings: Settings
    pipeline: Pipeline
    broker: Broker
    cast: Cast


@contextmanager
def opened(wish: Wish, folder: Path, latest: Latest) -> Iterator[Opened]:
    """Everything is ended with the block, by its id."""
    place = _broker_url(wish.broker, folder)
    with ExitStack() as stack:
        world = stack.enter_context(
            open_world(folder / "file-host", latest, with_kafka=place is None)
        )
        url = place or f"kafka://{world.kafka.servers if world.kafka else ''}"
        command = Run(
            reference=DOMAIN,
            broker=url,
            folder=folder,
            config=write_settings(folder, _said(wish, folder, url, world)),
            log_level=wish.log_level,
            development=True,
        )
        environment = environment_for(os.environ)
        settings = read_settings(command.flags(), environment)
        pipeline = open_xact(settings, silent)
        broker = stack.enter_context(closing(bootstrap.open_broker(settings.broker, silent)))
        _create_topics(wish, pipeline, broker, stack)
        crew = Crew(command, pipeline, broker, Surroundings(environment, folder / LOG_NAME), latest)
        stack.callback(crew.close)
        feeder = Feeder(_feed(wish, settings, world), broker, world.begin_outage)
        stack.callback(feeder.end)
        observer = Observer(
            _scene(settings, pipeline, broker), feeder.arrivals, latest, lambda: feeder.is_done
        )
        stack.callback(observer.end)
        yield Opened(settings, pipeline, broker, Cast(crew, feeder, observer, world, latest))


def check_broker(url: str | None, folder: Path) -> None:
    """Before anything is written or started."""
    if find_spec("deltalake") is None:
        raise Unusable(
            "The demo writes Delta tables, which needs deltalake, which is not installed. Nothing "
            "was started. Install it: pip install 'forebay[lakehouse]'."
        )
    _broker_url(url, folder)


def _broker_url(url: str | None, folder: Path) -> str | None:
    """As other processes can use it. None is a Kafka that has still to be started."""
    flags = Flags(broker=url or "embedded", folder=folder, config=Path(os.devnull))
    match read_settings(flags, environment_for(os.environ)).broker:
        case TrialKafka():
            return None
        case EmbeddedSettings(place):
            return f"embedded:{place.resolve()}"
        case KafkaSettings(bootstrap_servers):
            return f"kafka://{bootstrap_servers}"
        case EventHubs():
            raise WrongUse("The demo makes topics; Event Hubs takes none. Write another --broker.")


def _said(wish: Wish, folder: Path, url: str, world: World) -> Mapping[str, object]:
    said: dict[str, object] = {
        "dir": str(folder.resolve()),
        "broker": url,
        "kafka.xact.retry_delays": list(RETRY_SECONDS),
        "kafka.xact.result_processor.processing.batch_timeout_seconds": BATCH_SECONDS,
        "xact.allowed_hosts": [world.links.host],
        "outbound.ca_file": str(world.ca_file),
        "outbound.circuit_open_seconds": CIRCUIT_SECONDS,
        "outbound.file_max_bytes": FILE_BYTES_MAX,
    }
    if not wish.is_on_own_broker:
        name = f"demo-{uuid.uuid4().hex[:8]}"
        said["kafka.topic_prefix"] = f"{name}."
        said["kafka.xact.topics.events"] = f"{name}.{XactTopics().events}"
        said["kafka.xact.consumer_group_prefix"] = f"{name}-{DOMAIN}"
    return said


def _create_topics(wish: Wish, pipeline: Pipeline, broker: Broker, stack: ExitStack) -> None:
    """On a broker of somebody else they go when the demo ends."""
    plan = plan_topics(pipeline)
    if not wish.is_on_own_broker:
        for topic in plan.owned:
            stack.callback(broker.admin().delete_topic, topic.name)
    create_topics(broker.admin(), plan, foreign_too=True)


def _feed(wish: Wish, settings: Settings, world: World) -> Feed:
    return Feed(
        script=wish.scenario,
        seed=wish.seed,
        count=wish.events,
        host=world.links,
        topic=settings.xact.topics.events,
        rate=wish.rate,
        outages=scenario_named(wish.scenario).outages,
    )


def _scene(settings: Settings, pipeline: Pipeline, broker: Broker) -> Scene:
    return Scene(
        broker,
        pipeline,
        results=settings.xact.topics.downloads_results,
        table=settings.tables_folder / ATTACHMENTS,
        attempts_max=settings.xact.retry.attempts_max,
    )
