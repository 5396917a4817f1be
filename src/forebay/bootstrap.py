"""The composition root: the only place that names adapters, each imported where it is built."""

# ruff: noqa: PLC0415  imported where they are built, so that no command pays for what it leaves out

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, TextIO, assert_never

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
from forebay.engine.dead_letters import LetterFile
from forebay.engine.doors import ExpiredRange
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.ledger_spill import LedgerSpill
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import RowFile, SinkStage, SqlTable
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


def open_database(path: Path) -> Database:
    """A database of Forebay's own, brought up to date."""
    from forebay.state.schema import migrate
    from forebay.state.sqlite.database import SqliteDatabase

    database = SqliteDatabase(path)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


@contextmanager
def open_site(settings: Settings, broker: Broker, emit: Emit) -> Iterator[Site]:
    """What a pipeline needs around it, without the ledger's database before it is wanted."""
    with ExitStack() as closing:
        state = LazyState(settings.state_file, closing)
        yield Site(
            broker=broker,
            clock=SystemClock(),
            emit=emit,
            open_sink=lambda pipeline, stage: _open_sink(pipeline, stage, closing),
            open_letter_file=_open_letter_file,
            open_ledger=lambda pipeline: _open_ledger(pipeline, state.open()),
            open_spill=lambda pipeline: LedgerSpill(state.open, ledger_stages(pipeline)),
            expired=lambda expired: _record_expired(expired, state.open()),
        )


class LazyState:
    """Opened by the first who needs it."""

    def __init__(self, path: Path, closing: ExitStack) -> None:
        self._path = path
        self._closing = closing
        self._opening = Lock()
        self._database: Database | None = None

    def open(self) -> Database:
        with self._opening:
            if self._database is None:
                self._database = open_database(self._path)
                self._closing.callback(self._database.close)
            return self._database


def _open_sink(pipeline: Pipeline, stage: SinkStage, closing: ExitStack) -> Sink[Any]:
    match stage.target:
        case SqlTable(file=file, name=table):
            return _sql_sink(f"{pipeline.name}-{stage.name}", stage, file, table, closing)
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
