"""What the rooms below are told, and what no room has declared itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from forebay.broker.settings import ConsumerSettings, EmbeddedSettings, KafkaSettings, Secret
from forebay.domains.xact.settings import XactSettings
from forebay.identity import AzureSettings
from forebay.observability.settings import LogSettings
from forebay.outbound.settings import EXTERNAL_DOWNLOAD, DownloadSettings

DATA_FOLDER = Path("forebay-data")
CACHE_BYTES_MAX = 20 * 2**30


@dataclass(frozen=True, slots=True)
class TrialKafka:
    """An Apache Kafka started from jars for as long as it is used; it keeps nothing."""


@dataclass(frozen=True, slots=True)
class EventHubs:
    connection_string: Secret


BrokerSettings: TypeAlias = EmbeddedSettings | KafkaSettings | TrialKafka | EventHubs


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said; None where it said nothing."""

    broker: str | None = None
    folder: Path | None = None
    log_level: str | None = None
    log_format: str | None = None
    config: Path | None = None
    development: bool = False
    no_tables: bool = False


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where files go and wait. A place is a local path or the URL of an object store."""

    folder: Path
    base_path: str | None = None
    domain_paths: Mapping[str, str] = field(default_factory=dict)
    cache_dir: Path | None = None
    cache_bytes_max: int = CACHE_BYTES_MAX

    @property
    def cache_folder(self) -> Path:
        return self.cache_dir or self.folder / "cache"

    def files_of(self, domain: str) -> str:
        """A domain without a place of its own has a folder in the one for all."""
        if own := self.domain_paths.get(domain):
            return own
        base = self.base_path or str(self.folder / "files")
        return f"{base.rstrip('/')}/{domain}"


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """Port 0: the first free one."""

    port: int = 0
    host: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Chosen:
    """An option that somebody has changed; a secret's value is stars."""

    key: str
    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class Settings:
    """`unused`: what was said, is known, and means nothing to this version."""

    folder: Path
    broker: BrokerSettings
    log: LogSettings
    storage: StorageSettings
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    xact: XactSettings = field(default_factory=XactSettings)
    tls_ca_file: Path | None = None
    file_bytes_max: int = DownloadSettings().file_bytes_max
    circuit_open_seconds: float = EXTERNAL_DOWNLOAD.open_seconds
    azure: AzureSettings = field(default_factory=AzureSettings)
    chosen: tuple[Chosen, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def state_file(self) -> Path:
        """The ledger and all else that Forebay keeps in small: one process writes it."""
        return self.folder / "state.db"

    @property
    def tables_folder(self) -> Path:
        return self.folder / "tables"
