"""Every option, once. Reading, checking, docs/reference/settings.md, deploy/forebay.example.yaml
and `forebay doctor --config` are made from this table.
"""

from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from forebay.broker.settings import ConsumerSettings, KafkaSettings, Secret
from forebay.domains.xact.settings import XactSettings, XactTopics
from forebay.observability.catalogue import Level
from forebay.observability.settings import LogFormat
from forebay.outbound.settings import DownloadSettings
from forebay.settings import azure
from forebay.settings.kinds import (
    BrokerUrl,
    Delays,
    ExistingFile,
    FileTypes,
    Folder,
    Hosts,
    Location,
    Number,
    OneOf,
    SecretText,
    Size,
    Text,
    TopicName,
    Whole,
    YesNo,
)
from forebay.settings.option import Option
from forebay.settings.slices import CACHE_BYTES_MAX, DATA_FOLDER, HealthSettings

SecurityProtocol: TypeAlias = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
_PROTOCOLS: tuple[SecurityProtocol, ...] = get_args(SecurityProtocol)
_MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
_LEVELS: tuple[Level, ...] = get_args(Level)
_FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)
_CONSUMER = ConsumerSettings()
_KAFKA = KafkaSettings("")
_HEALTH = HealthSettings()
_DOWNLOADS = DownloadSettings()
_XACT = XactSettings()
_TOPICS = XactTopics()


FOLDER = Option(
    "dir", Folder(), "Where everything is kept that is kept here", DATA_FOLDER, flag="--dir"
)
BROKER: Option[str | None] = Option(
    "broker",
    BrokerUrl(),
    "Which broker",
    None,
    ("FOREBAY_BROKER",),
    flag="--broker",
    otherwise="Kafka where its servers are named, else embedded in `--dir`",
    example="kafka://broker.example:9093",
)

BOOTSTRAP_SERVERS: Option[str | None] = Option(
    "kafka.connection.bootstrap_servers",
    Text(shape="host:port[,host:port]"),
    "Kafka, when nothing else says which broker",
    None,
    ("KAFKA_BOOTSTRAP_SERVERS",),
    example="broker.example:9093",
)
SECURITY_PROTOCOL: Option[SecurityProtocol] = Option(
    "kafka.connection.security_protocol",
    OneOf(_PROTOCOLS),
    "How connections are protected",
    "PLAINTEXT",
    ("KAFKA_SECURITY_PROTOCOL",),
)
SASL_MECHANISM: Option[Mechanism | None] = Option(
    "kafka.connection.sasl_mechanism",
    OneOf(_MECHANISMS),
    "How we prove who we are: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
    None,
    ("KAFKA_SASL_MECHANISM",),
    example="SCRAM-SHA-512",
)
SASL_USERNAME: Option[str | None] = Option(
    "kafka.connection.sasl_plain_username",
    Text(),
    "The user of PLAIN and SCRAM",
    None,
    ("KAFKA_SASL_PLAIN_USERNAME",),
    example="forebay",
)
SASL_PASSWORD: Option[Secret | None] = Option(
    "kafka.connection.sasl_plain_password",
    SecretText(),
    "The password of PLAIN and SCRAM; better in the environment than in a file",
    None,
    ("KAFKA_SASL_PLAIN_PASSWORD",),
    example="'...'",
)
SSL_CAFILE: Option[Path | None] = Option(
    "kafka.connection.ssl_cafile",
    ExistingFile(),
    "A PEM file with who may sign the broker's certificate",
    None,
    ("KAFKA_SSL_CAFILE",),
    otherwise="the system's",
    example="certificates/broker-ca.pem",
)
EVENTHUB_CONNECTION: Option[Secret | None] = Option(
    "kafka.connection.eventhub_connection_string",
    SecretText(),
    "The namespace, for the broker eventhub; better in the environment than in a file",
    None,
    ("EVENTHUB_CONNECTION_STRING",),
    example="'...'",
)
REQUEST_TIMEOUT = Option(
    "kafka.connection.request_timeout_ms",
    Whole(1_000, 900_000),
    "How long a request may take",
    round(_KAFKA.request_timeout_seconds * 1000),
    unit="ms",
)
METADATA_MAX_AGE = Option(
    "kafka.connection.metadata_max_age_ms",
    Whole(1_000, 86_400_000),
    "How old the knowledge of topics and brokers may get",
    round(_KAFKA.metadata_max_age_seconds * 1000),
    unit="ms",
)
CONNECTIONS_MAX_IDLE = Option(
    "kafka.connection.connections_max_idle_ms",
    Whole(1_000, 86_400_000),
    "How long a connection may be idle; under 240000 on Azure, which drops it then",
    round(_KAFKA.connection_idle_seconds * 1000),
    unit="ms",
)

SESSION_TIMEOUT = Option(
    "kafka.consumer_defaults.session_timeout_ms",
    Whole(1_000, 1_800_000),
    "After how long without a sign of life others take over; at least twice the heartbeat",
    round(_CONSUMER.session_timeout_seconds * 1000),
    ("KAFKA_SESSION_TIMEOUT_MS",),
    unit="ms",
)
HEARTBEAT = Option(
    "kafka.consumer_defaults.heartbeat_interval_ms",
    Whole(100, 900_000),
    "How often a sign of life is sent",
    round(_CONSUMER.heartbeat_seconds * 1000),
    unit="ms",
)
POLL_INTERVAL_MAX = Option(
    "kafka.consumer_defaults.max_poll_interval_ms",
    Whole(1_000, 86_400_000),
    "After how long without a poll a process counts as hung; at least the session timeout",
    round(_CONSUMER.poll_interval_max_seconds * 1000),
    unit="ms",
)

TOPIC_PREFIX: Option[str | None] = Option(
    "kafka.topic_prefix",
    TopicName(),
    "Put before every topic that xact writes, for a second run beside the first; what it reads "
    "from outside keeps its name",
    None,
    ("KAFKA_TOPIC_PREFIX",),
    example="shadow.",
)
TOPIC_EVENTS = Option(
    "kafka.xact.topics.events",
    TopicName(),
    "Events from outside",
    _TOPICS.events,
    ("KAFKA_EVENTS_TOPIC",),
)
TOPIC_PENDING = Option(
    "kafka.xact.topics.downloads_pending",
    TopicName(),
    "Attachments to download",
    _TOPICS.downloads_pending,
    ("KAFKA_DOWNLOADS_PENDING_TOPIC",),
)
TOPIC_CACHED = Option(
    "kafka.xact.topics.downloads_cached",
    TopicName(),
    "Attachments to upload",
    _TOPICS.downloads_cached,
    ("KAFKA_DOWNLOADS_CACHED_TOPIC",),
)
TOPIC_RESULTS = Option(
    "kafka.xact.topics.downloads_results",
    TopicName(),
    "How each attachment ended",
    _TOPICS.downloads_results,
    ("KAFKA_DOWNLOADS_RESULTS_TOPIC",),
)
TOPIC_DLQ = Option(
    "kafka.xact.topics.dlq",
    TopicName(),
    "Dead letters of the downloads",
    _TOPICS.downloads_dlq,
    ("KAFKA_DLQ_TOPIC",),
)
GROUP_PREFIX: Option[str | None] = Option(
    "kafka.xact.consumer_group_prefix",
    TopicName(shape="a prefix of letters, digits, '.', '_' and '-'"),
    "Put before a stage's name, this is its consumer group",
    None,
    ("KAFKA_CONSUMER_GROUP_PREFIX",),
    otherwise=f"`{_XACT.group_prefix}`, behind kafka.topic_prefix",
    example=_XACT.group_prefix,
)
RETRY_DELAYS = Option(
    "kafka.xact.retry_delays",
    Delays(),
    "How long to wait before each further attempt",
    _XACT.retry.delays_seconds,
    ("RETRY_DELAYS",),
    unit="s",
)
MAX_RETRIES: Option[int | None] = Option(
    "kafka.xact.max_retries",
    Whole(0, 20),
    "How many of the delays are used; 0 dead-letters at once",
    None,
    ("MAX_RETRIES",),
    otherwise="all of them",
    example="4",
)
DOWNLOAD_CONCURRENCY = Option(
    "kafka.xact.download.processing.concurrency",
    Whole(1, 500),
    "Downloads at once in a process",
    _XACT.download_concurrency,
    ("DOWNLOAD_CONCURRENCY",),
)
DOWNLOAD_TIMEOUT = Option(
    "kafka.xact.download.processing.timeout_seconds",
    Number(1, 3_600),
    "How long a download may take",
    _XACT.download_seconds,
    ("DOWNLOAD_TIMEOUT_SECONDS",),
    unit="s",
)
UPLOAD_CONCURRENCY = Option(
    "kafka.xact.upload.processing.concurrency",
    Whole(1, 500),
    "Uploads at once in a process",
    _XACT.upload_concurrency,
    ("UPLOAD_CONCURRENCY",),
)
BATCH_SIZE = Option(
    "kafka.xact.result_processor.processing.batch_size",
    Whole(1, _XACT.batch.records_max),
    "Rows that a table's writer commits together",
    _XACT.batch.records,
    ("BATCH_SIZE",),
)
BATCH_TIMEOUT = Option(
    "kafka.xact.result_processor.processing.batch_timeout_seconds",
    Number(0, 3_600),
    "How long a row may wait for others",
    _XACT.batch.seconds,
    ("BATCH_TIMEOUT_SECONDS",),
    unit="s",
)

ALLOWED_HOSTS = Option(
    "xact.allowed_hosts",
    Hosts(),
    "Hosts that attachments may come from; an empty list refuses all",
    _XACT.allowed_hosts,
    ("ALLOWED_ATTACHMENT_DOMAINS",),
)
FILE_TYPES = Option(
    "xact.file_types", FileTypes(), "Types that attachments may have", _XACT.file_types
)
FOLLOW_REDIRECTS = Option(
    "xact.follow_redirects",
    YesNo(),
    "Whether a host may send us to another address of its own; to another host it never may",
    _XACT.follow_redirects,
)
SEEN_WINDOW = Option(
    "xact_eventhouse.dedup.xact_events_window_hours",
    Number(0.01, 720),
    "For how long an event is known when it comes again",
    _XACT.seen_window_seconds / 3_600,
    ("DEDUP_XACT_EVENTS_WINDOW_HOURS",),
    unit="h",
)

BASE_PATH: Option[str | None] = Option(
    "storage.onelake_base_path",
    Location(),
    "Where files of domains go that have no place of their own, each into a folder named after it",
    None,
    ("ONELAKE_BASE_PATH", "ONELAKE_FILES_PATH"),
    otherwise="`files` in `dir`",
    example="abfss://workspace@onelake.dfs.fabric.microsoft.com/lakehouse/Files",
)
XACT_PATH: Option[str | None] = Option(
    "storage.onelake_domain_paths.xact",
    Location(),
    "Where the files of xact go",
    None,
    ("ONELAKE_XACT_PATH",),
    otherwise="`xact` below the place for all",
    example="abfss://workspace@onelake.dfs.fabric.microsoft.com/lakehouse/Files/xact",
)
CACHE_DIR: Option[Path | None] = Option(
    "storage.cache_dir",
    Folder(),
    "Where files wait between download and upload: a folder of this machine, or a shared volume",
    None,
    ("CACHE_DIR",),
    otherwise="`cache` in `dir`",
    example="forebay-data/cache",
)
CACHE_BYTES = Option(
    "storage.cache_max_bytes",
    Size(2**20),
    "At this size downloads pause; nothing is swept to make room",
    CACHE_BYTES_MAX,
    unit="bytes",
)

ENABLE_WRITES = Option(
    "delta.enable_writes", YesNo(), "Whether tables are written", _XACT.writes_tables
)
EVENTS_TABLE: Option[str | None] = Option(
    "delta.xact.events_table_path",
    Location(),
    "The table of events",
    None,
    ("DELTA_EVENTS_TABLE",),
    otherwise="`tables/xact_events` in `dir`",
    example="abfss://workspace@onelake.dfs.fabric.microsoft.com/lakehouse/Tables/xact_events",
)
INVENTORY_TABLE: Option[str | None] = Option(
    "delta.xact.inventory_table_path",
    Location(),
    "The table of stored attachments",
    None,
    ("DELTA_INVENTORY_TABLE",),
    otherwise="`tables/xact_attachments` in `dir`",
    example="abfss://workspace@onelake.dfs.fabric.microsoft.com/lakehouse/Tables/xact_attachments",
)
FAILED_TABLE: Option[str | None] = Option(
    "delta.xact.failed_table_path",
    Location(),
    "The table of attachments that could not be stored",
    None,
    ("DELTA_FAILED_TABLE",),
    otherwise="`tables/xact_attachments_failed` in `dir`",
    example="abfss://workspace@onelake.dfs.fabric.microsoft.com/lakehouse/Tables/xact_failed",
)

CA_FILE: Option[Path | None] = Option(
    "outbound.ca_file",
    ExistingFile(),
    "A PEM file that vouches for hosts of downloads in addition to the system's certificates",
    None,
    ("FOREBAY_CA_FILE",),
    example="certificates/company-ca.pem",
)

FILE_BYTES = Option(
    "outbound.file_max_bytes",
    Size(2**10),
    "A larger file is given up",
    _DOWNLOADS.file_bytes_max,
    unit="bytes",
    example="104857600",
)
CIRCUIT_OPEN = Option(
    "outbound.circuit_open_seconds",
    Number(0.1, 3_600),
    "How long a host that fails again and again is not asked",
    _DOWNLOADS.breaker.open_seconds,
    unit="s",
)
HEALTH_PORT = Option(
    "health.port",
    Whole(0, 65_535),
    "Where probes are answered; 0 takes the first free port from 8000",
    _HEALTH.port,
    ("METRICS_PORT",),
    flag="--health-port",
)
HEALTH_HOST = Option(
    "health.host",
    Text(shape="an address of this machine, or 0.0.0.0"),
    "Who may ask: 0.0.0.0 lets other machines",
    _HEALTH.host,
    flag="--health-host",
)
LOG_LEVEL: Option[Level | None] = Option(
    "logging.level",
    OneOf(_LEVELS),
    "From where on the log tells of an event",
    None,
    ("LOG_LEVEL",),
    flag="--log-level",
    otherwise="warning for commands",
    example="info",
)
LOG_FORMAT: Option[LogFormat | None] = Option(
    "logging.format",
    OneOf(_FORMATS),
    "How the log is written",
    None,
    ("LOG_FORMAT",),
    flag="--log-format",
    otherwise="console on a terminal, else json",
    example="json",
)

OPTIONS: tuple[Option[Any], ...] = (
    *(FOLDER, BROKER, TOPIC_PREFIX),
    *(BOOTSTRAP_SERVERS, SECURITY_PROTOCOL, SASL_MECHANISM),
    *(SASL_USERNAME, SASL_PASSWORD, SSL_CAFILE, EVENTHUB_CONNECTION),
    *(REQUEST_TIMEOUT, METADATA_MAX_AGE, CONNECTIONS_MAX_IDLE),
    *(SESSION_TIMEOUT, HEARTBEAT, POLL_INTERVAL_MAX),
    *(TOPIC_EVENTS, TOPIC_PENDING, TOPIC_CACHED, TOPIC_RESULTS, TOPIC_DLQ),
    *(GROUP_PREFIX, RETRY_DELAYS, MAX_RETRIES, DOWNLOAD_CONCURRENCY, DOWNLOAD_TIMEOUT),
    *(UPLOAD_CONCURRENCY, BATCH_SIZE, BATCH_TIMEOUT),
    *(ALLOWED_HOSTS, FILE_TYPES, FOLLOW_REDIRECTS, SEEN_WINDOW),
    *(BASE_PATH, XACT_PATH, CACHE_DIR, CACHE_BYTES),
    *(ENABLE_WRITES, EVENTS_TABLE, INVENTORY_TABLE, FAILED_TABLE),
    *azure.OPTIONS,
    *(CA_FILE, FILE_BYTES, CIRCUIT_OPEN, HEALTH_PORT, HEALTH_HOST, LOG_LEVEL, LOG_FORMAT),
)
