"""The composition root: the only place that names adapters, each imported where it is built."""

# ruff: noqa: PLC0415  imported where they are built, so that no command pays for what it leaves out

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TextIO, assert_never

from forebay.broker.port import Admin, Broker, BrokerDescription, Consumer, Finding, Producer
from forebay.broker.settings import (
    ConsumerSettings,
    EmbeddedSettings,
    KafkaSettings,
    ProducerSettings,
)
from forebay.core.errors import Unusable
from forebay.observability.catalogue import Emit, silent
from forebay.observability.clock import SystemClock
from forebay.observability.settings import LogSettings
from forebay.settings import BrokerSettings, EventHubs, Flags, TrialKafka, read_settings


def connect(
    url: str, *, emit: Emit | None = None, environment: Mapping[str, str] | None = None
) -> Broker:
    """The broker that `--broker URL` means, with credentials from the environment."""
    settings = read_settings(Flags(broker=url), environment)
    return open_broker(settings.broker, emit or silent)


def open_broker(settings: BrokerSettings, emit: Emit) -> Broker:
    refuse_unsupported_system(sys.platform)
    match settings:
        case EmbeddedSettings():
            return _embedded(settings, emit)
        case KafkaSettings():
            return _kafka(settings, emit)
        case EventHubs():
            return _event_hubs(settings, emit)
        case TrialKafka():
            return _trial_broker(emit)
        case _:
            assert_never(settings)


@contextmanager
def trial_kafka() -> Iterator[str]:
    """An Apache Kafka from jars, gone with the block; gives its addresses."""
    from forebay.broker.kafka.trial import TrialCluster

    with TrialCluster() as cluster:
        yield cluster.bootstrap


def open_emitter(settings: LogSettings, stream: TextIO) -> Emit:
    from forebay.observability.emitter import Emitter

    return Emitter(stream, settings, SystemClock()).emit


def refuse_unsupported_system(platform: str) -> None:
    if platform in {"win32", "cygwin"}:
        raise Unusable(
            "Forebay does not run on Windows: its embedded broker needs POSIX locks. Use Linux, "
            "for example in WSL 2."
        )


def untested_system(platform: str) -> str | None:
    """What to say at start on a system that is not tested."""
    if platform == "linux":
        return None
    return f"Forebay is tested on Linux; on {platform} it uses fallbacks that are untested."


def _embedded(settings: EmbeddedSettings, emit: Emit) -> Broker:
    from forebay.broker.embedded.broker import EmbeddedBroker

    return EmbeddedBroker(settings, clock=SystemClock(), emit=emit)


def _kafka(settings: KafkaSettings, emit: Emit) -> Broker:
    from forebay.broker.kafka.broker import KafkaBroker

    return KafkaBroker(settings, emit)


def _event_hubs(settings: EventHubs, emit: Emit) -> Broker:
    from forebay.broker.kafka.configuration import event_hubs

    return _kafka(event_hubs(settings.connection_string), emit)


def _trial_broker(emit: Emit) -> Broker:
    with ExitStack() as starting:
        servers = starting.enter_context(trial_kafka())
        broker = _kafka(KafkaSettings(bootstrap_servers=servers), emit)
        return _TrialBroker(broker, starting.pop_all())


class _TrialBroker:
    """A broker whose cluster ends with it."""

    def __init__(self, broker: Broker, cluster: ExitStack) -> None:
        self._broker = broker
        self._cluster = cluster

    def describe(self) -> BrokerDescription:
        return self._broker.describe()

    def diagnose(self) -> list[Finding]:
        return self._broker.diagnose()

    @property
    def record_bytes_max(self) -> int:
        return self._broker.record_bytes_max

    def admin(self) -> Admin:
        return self._broker.admin()

    def producer(self, settings: ProducerSettings | None = None) -> Producer:
        return self._broker.producer(settings)

    def consumer(self, group: str | None, settings: ConsumerSettings | None = None) -> Consumer:
        return self._broker.consumer(group, settings)

    def close(self) -> None:
        with self._cluster:
            self._broker.close()
