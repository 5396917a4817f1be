"""The composition root: the only place that names adapters, each imported where it is built."""

# ruff: noqa: PLC0415  imported where they are built, so that no command pays for what it leaves out

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO, assert_never

from forebay.bootstrap.aside import KEEPERS, ToldSpill, told_expired
from forebay.bootstrap.state import LazyState, open_database
from forebay.bootstrap.tables import open_delta_sink, open_table, table_location
from forebay.broker.port import Admin, Broker, BrokerDescription, Consumer, Finding, Producer
from forebay.broker.settings import (
    ConsumerSettings,
    EmbeddedSettings,
    KafkaSettings,
    ProducerSettings,
)
from forebay.core.errors import Unusable
from forebay.core.sinks import Sink
from forebay.engine.assembly import Site, ledger_stages
from forebay.engine.dead_letters import LetterFile, Spill
from forebay.engine.doors import ExpiredRange
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.ledger_spill import LedgerSpill
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import DeltaTable, RowFile, SinkStage, SqlTable
from forebay.observability.catalogue import Emit, silent
from forebay.observability.clock import SystemClock
from forebay.observability.settings import LogSettings
from forebay.settings import (
    BrokerSettings,
    EventHubs,
    Flags,
    Settings,
    TrialKafka,
    read_settings,
)
from forebay.state.port import Database

DOMAINS = ("xact",)

__all__ = [
    "DOMAINS",
    "connect",
    "domain_pipeline",
    "open_broker",
    "open_database",
    "open_emitter",
    "open_site",
    "open_table",
    "refuse_unsupported_system",
    "table_location",
    "trial_kafka",
    "untested_system",
]


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


def domain_pipeline(name: str, settings: Settings, emit: Emit) -> Pipeline | None:
    """One of the pipelines that Forebay brings, None where it brings none of that name."""
    if name == "xact":
        from forebay.bootstrap.xact import open_xact

        return open_xact(settings, emit)
    return None


@contextmanager
def open_site(
    settings: Settings, broker: Broker, emit: Emit, *, part: str = "all"
) -> Iterator[Site]:
    """What a pipeline needs around it, without the ledger's database before it is wanted.

    `part`: what of the pipeline runs here. State belongs to one process, so others say what they
    write down.
    """
    with ExitStack() as closing:
        state = LazyState(settings.state_file, closing)

        def open_spill(pipeline: Pipeline) -> Spill:
            spill = LedgerSpill(state.open, ledger_stages(pipeline))
            return spill if part in KEEPERS else ToldSpill(spill, settings.state_file, emit)

        def expired(range_: ExpiredRange) -> None:
            _record_expired(range_, state.open())

        yield Site(
            broker=broker,
            clock=SystemClock(),
            emit=emit,
            open_sink=lambda pipeline, stage: _open_sink(
                pipeline, stage, Surroundings(settings, emit, closing)
            ),
            open_letter_file=_open_letter_file,
            open_ledger=lambda pipeline: _open_ledger(pipeline, state.open()),
            open_spill=open_spill,
            expired=(
                expired if part in KEEPERS else told_expired(expired, settings.state_file, emit)
            ),
            consumer=settings.consumer,
        )


class Surroundings(NamedTuple):
    """Of a sink that is opened."""

    settings: Settings
    emit: Emit
    closing: ExitStack


def _open_sink(pipeline: Pipeline, stage: SinkStage, around: Surroundings) -> Sink[Any]:
    name = f"{pipeline.name}-{stage.name}"
    match stage.target:
        case SqlTable(file=file, name=table):
            return _sql_sink(name, stage, file, table, around.closing)
        case DeltaTable():
            return open_delta_sink(name, stage, stage.target, around.settings, around.emit)
        case RowFile(path=path):
            from forebay.state.file_sink import FileSink

            return FileSink(path)
        case opens:
            return opens()


def _sql_sink(name: str, stage: SinkStage, path: Path, table: str, closing: ExitStack) -> Sink[Any]:
    from forebay.state.sql_sink import SqlSink
    from forebay.state.sql_sink import SqlTable as Rows
    from forebay.state.sql_values import Column
    from forebay.state.sqlite.database import SqliteDatabase

    database = SqliteDatabase(path)
    closing.callback(database.close)
    columns = tuple(Column(column, kind) for column, kind in (stage.columns or {}).items())
    return SqlSink(database, name, Rows(table, columns, tuple(stage.key)))


def _open_ledger(pipeline: Pipeline, database: Database) -> Sink[Any]:
    return LedgerSink(database, ledger_stages(pipeline))


def _open_letter_file(path: Path) -> LetterFile:
    from forebay.engine.letter_file import CsvLetters

    return CsvLetters(path)


def _record_expired(expired: ExpiredRange, database: Database) -> None:
    from forebay.state.expired_ranges import ExpiredRange as Range
    from forebay.state.expired_ranges import ExpiredRanges

    now_ms = int(SystemClock().now() * 1000)
    ExpiredRanges(database).record(
        Range(expired.group, *expired.at, expired.from_offset, expired.to_offset, now_ms)
    )


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
