"""Flags over environment over defaults, read once into the slices that the rooms declare.

The only module that reads the environment. Every problem is found before one error names them all.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, get_args

from forebay.broker.settings import EmbeddedSettings, KafkaSettings, Secret
from forebay.core.errors import Unusable
from forebay.observability.catalogue import Level
from forebay.observability.settings import LogFormat, LogSettings

DATA_FOLDER = Path("forebay-data")
BROKER_FORMS = "embedded:DIR, embedded:///path, kafka://host:port, kafka or eventhub"

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
Choice = TypeVar("Choice", bound=str)


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


@dataclass(frozen=True, slots=True)
class Settings:
    folder: Path
    broker: BrokerSettings
    log: LogSettings

    @property
    def state_file(self) -> Path:
        """The ledger and all else that Forebay keeps in small: one process writes it."""
        return self.folder / "state.db"


def read_settings(
    flags: Flags | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    return _Reader(os.environ if environment is None else environment).read(flags or Flags())


class _Reader:
    """Goes on after a problem, so that a person mends all of them at once."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._problems: list[str] = []

    def read(self, flags: Flags) -> Settings:
        folder = (flags.folder or DATA_FOLDER).expanduser()
        broker = self._broker(flags, folder)
        log = LogSettings(self._level(flags.log_level), self._format(flags.log_format))
        if self._problems:
            raise Unusable(_one_message(self._problems))
        return Settings(folder, broker, log)

    def _get(self, name: str) -> str | None:
        return self._environment.get(name, "").strip() or None

    def _problem(self, sentence: str) -> None:
        self._problems.append(sentence)

    def _broker(self, flags: Flags, folder: Path) -> BrokerSettings:
        if flags.broker is not None:
            return self._named_broker("--broker", flags.broker.strip(), folder)
        if url := self._get("FOREBAY_BROKER"):
            return self._named_broker("FOREBAY_BROKER", url, folder)
        if servers := self._get("KAFKA_BOOTSTRAP_SERVERS"):
            return self._kafka("KAFKA_BOOTSTRAP_SERVERS", servers)
        return EmbeddedSettings(folder)

    def _named_broker(self, source: str, url: str, folder: Path) -> BrokerSettings:
        if url == "kafka":
            return TrialKafka()
        if url == "eventhub":
            return self._event_hubs(source)
        if url == "embedded":
            return EmbeddedSettings(folder)
        if url.startswith("embedded:"):
            return EmbeddedSettings(self._embedded_folder(source, url, folder))
        if url.startswith("kafka://"):
            return self._kafka(source, url.removeprefix("kafka://"))
        self._problem(f"{source} is {_shown(url)}, which names no broker; write {BROKER_FORMS}.")
        return EmbeddedSettings(folder)

    def _embedded_folder(self, source: str, url: str, otherwise: Path) -> Path:
        place = url.removeprefix("embedded:")
        if place.startswith("//") and not place.startswith("///"):
            self._problem(
                f"{source} is {_shown(url)}; after two slashes a host would follow. Write "
                f"embedded:{place[2:]} for a folder here or embedded:///{place[2:]} from the root."
            )
        if not place.strip("/"):
            self._problem(f"{source} is {_shown(url)}, without a folder; write embedded:DIR.")
            return otherwise
        return Path(place.removeprefix("//")).expanduser()

    def _event_hubs(self, source: str) -> EventHubs:
        secret = self._get("EVENTHUB_CONNECTION_STRING")
        if secret is None:
            self._problem(
                f"{source} is eventhub, but EVENTHUB_CONNECTION_STRING is not set; set it to the "
                f"connection string of the namespace (Endpoint=sb://…)."
            )
        return EventHubs(Secret(secret or ""))

    def _kafka(self, source: str, servers: str) -> KafkaSettings:
        for server in servers.split(","):
            if problem := _server_problem(server.strip()):
                self._problem(f"{source}: {problem}; write kafka://host:port[,host:port].")
        protocols: tuple[SecurityProtocol, ...] = get_args(SecurityProtocol)
        mechanisms: tuple[Mechanism, ...] = get_args(Mechanism)
        protocol = self._chosen("KAFKA_SECURITY_PROTOCOL", protocols) or protocols[0]
        mechanism = self._chosen("KAFKA_SASL_MECHANISM", mechanisms)
        username = self._get("KAFKA_SASL_PLAIN_USERNAME")
        password = self._get("KAFKA_SASL_PLAIN_PASSWORD")
        self._check_sasl(protocol, mechanism, has_credentials=bool(username and password))
        return KafkaSettings(
            bootstrap_servers=",".join(server.strip() for server in servers.split(",")),
            security_protocol=protocol,
            sasl_mechanism=mechanism,
            username=username,
            password=Secret(password) if password else None,
            ca_file=self._ca_file(),
        )

    def _check_sasl(self, protocol: str, mechanism: str | None, *, has_credentials: bool) -> None:
        wants_sasl = protocol.startswith("SASL_")
        if wants_sasl and mechanism is None:
            self._problem(
                f"KAFKA_SECURITY_PROTOCOL is {protocol}, but KAFKA_SASL_MECHANISM is not set; "
                f"write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."
            )
        if not wants_sasl and mechanism is not None:
            self._problem(
                f"KAFKA_SASL_MECHANISM is {mechanism}, but KAFKA_SECURITY_PROTOCOL is {protocol}; "
                f"write SASL_SSL (or SASL_PLAINTEXT on a trusted network)."
            )
        if wants_sasl and mechanism == "OAUTHBEARER":
            self._problem(
                "KAFKA_SASL_MECHANISM is OAUTHBEARER, which needs a token provider that the "
                "environment cannot name yet; write PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."
            )
        elif wants_sasl and mechanism and not has_credentials:
            self._problem(
                f"{mechanism} needs credentials; set KAFKA_SASL_PLAIN_USERNAME and "
                f"KAFKA_SASL_PLAIN_PASSWORD."
            )

    def _ca_file(self) -> Path | None:
        place = self._get("KAFKA_SSL_CAFILE")
        if place and not Path(place).is_file():
            self._problem(
                f"KAFKA_SSL_CAFILE is {place}, where no file is; write the path of a PEM file."
            )
        return Path(place) if place else None

    def _level(self, flag: str | None) -> Level | None:
        levels: tuple[Level, ...] = get_args(Level)
        return self._named_choice("--log-level", flag, "LOG_LEVEL", levels)

    def _format(self, flag: str | None) -> LogFormat | None:
        formats: tuple[LogFormat, ...] = get_args(LogFormat)
        return self._named_choice("--log-format", flag, "LOG_FORMAT", formats)

    def _named_choice(
        self, flag: str, value: str | None, variable: str, choices: tuple[Choice, ...]
    ) -> Choice | None:
        if value is not None:
            return self._choice(flag, value, choices)
        return self._chosen(variable, choices)

    def _chosen(self, variable: str, choices: tuple[Choice, ...]) -> Choice | None:
        value = self._get(variable)
        return self._choice(variable, value, choices) if value else None

    def _choice(self, source: str, value: str, choices: tuple[Choice, ...]) -> Choice | None:
        for choice in choices:
            if choice.lower() == value.strip().lower():
                return choice
        self._problem(f"{source} is {value!r}; write one of {', '.join(choices)}.")
        return None


def _server_problem(server: str) -> str | None:
    if "@" in server:
        return (
            "a broker address holds no credentials (set KAFKA_SASL_PLAIN_USERNAME and "
            "KAFKA_SASL_PLAIN_PASSWORD)"
        )
    host, _, port = server.rpartition(":")
    if "/" in server:
        return f"{server!r} has a path, a broker address has none"
    if not host or (":" in host and not (host.startswith("[") and host.endswith("]"))):
        return f"{server!r} is not host:port"
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        return f"{server!r} has no port between 1 and 65535"
    return None


def _shown(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return repr(f"{scheme}{mark}…@{rest.rpartition('@')[2]}" if "@" in rest else url)


def _one_message(problems: list[str]) -> str:
    if len(problems) == 1:
        return problems[0]
    lines = "".join(f"\n  - {problem}" for problem in problems)
    return f"{len(problems)} settings are wrong:{lines}"
