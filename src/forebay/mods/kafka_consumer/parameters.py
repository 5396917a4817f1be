"""Every parameter of the mod, once: validation, `describe` and the reference page are made of it.

Names, types, defaults and bounds are those of the mod's document (sections 10 and 15); the last
ones are ours.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "string", "list[string]", "callable", "int", "int/None", "bool", "dict", "enum"
]
Section: TypeAlias = Literal[
    "required", "kafka", "processing", "commits", "backup", "dead letters", "shutdown", "logging"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    kind: Kind
    section: Section
    description: str
    default: object = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_required(self) -> bool:
        return self.section == "required"

    def as_object(self) -> dict[str, object]:
        return {
            "name": self.name,
            "type": self.kind,
            "required": self.is_required,
            "default": self.default,
            "min": self.minimum,
            "max": self.maximum,
            "description": self.description,
        }


_REQUIRED = (
    Parameter(
        name="bootstrap_servers",
        kind="string",
        section="required",
        description="Kafka broker addresses as host:port[,host:port], or embedded:///path for the "
        "embedded broker. Credentials come from the environment.",
    ),
    Parameter(
        name="topics",
        kind="list[string]",
        section="required",
        minimum=1,
        description="Topics to consume. One that does not exist yet is waited for.",
    ),
    Parameter(
        name="group_id",
        kind="string",
        section="required",
        description="Consumer group: instances of one group share the partitions.",
    ),
    Parameter(
        name="processor_callable",
        kind="callable",
        section="required",
        description="Called with the value of each message, as bytes (None for a null value); "
        "plain or async, its result is ignored, what it raises sends the message to the dead "
        "letters. A second required parameter, or one named record, gets the whole record. Also "
        "as text: module:function.",
    ),
)

_KAFKA = (
    Parameter(
        name="poll_timeout_ms",
        kind="int",
        section="kafka",
        default=1000,
        minimum=100,
        maximum=60_000,
        description="How long a poll waits where nothing is there. Waits longer than a second are "
        "cut into seconds, so that a stop and a commit come in time.",
    ),
    Parameter(
        name="max_poll_records",
        kind="int",
        section="kafka",
        default=100,
        minimum=1,
        maximum=10_000,
        description="Most messages that one poll brings. More than 500 are never asked for.",
    ),
    Parameter(
        name="session_timeout_ms",
        kind="int",
        section="kafka",
        default=10_000,
        minimum=1_000,
        maximum=1_800_000,
        description="How long the group waits for an instance that is silent before others take "
        "its partitions. No effect on the embedded broker.",
    ),
    Parameter(
        name="heartbeat_interval_ms",
        kind="int",
        section="kafka",
        default=3_000,
        minimum=100,
        maximum=600_000,
        description="How often an instance says that it lives, at most half of session_timeout_ms. "
        "No effect on the embedded broker.",
    ),
    Parameter(
        name="max_poll_interval_ms",
        kind="int",
        section="kafka",
        default=300_000,
        minimum=10_000,
        maximum=86_400_000,
        description="How long an instance may not poll before it loses its partitions. Slow "
        "messages do not count: polling goes on beside them. No effect on the embedded broker.",
    ),
    Parameter(
        name="auto_offset_reset",
        kind="enum",
        section="kafka",
        default="latest",
        choices=("earliest", "latest"),
        description="Where a group without a commit starts: earliest or latest. With latest the "
        "start says how many existing messages will not be read.",
    ),
    Parameter(
        name="enable_auto_commit",
        kind="bool",
        section="kafka",
        default=False,
        description="Only False: the client's own commits would pass messages that are not "
        "processed yet, and lose them in a crash. True is refused.",
    ),
    Parameter(
        name="isolation_level",
        kind="enum",
        section="kafka",
        default="read_uncommitted",
        choices=("read_uncommitted", "read_committed"),
        description="Whether messages of open or aborted transactions are read: read_uncommitted "
        "or read_committed. No effect on the embedded broker.",
    ),
)

_PROCESSING = (
    Parameter(
        name="worker_count",
        kind="int",
        section="processing",
        default=50,
        minimum=1,
        maximum=1_000,
        description="Messages processed at once: threads, or tasks for an async processor.",
    ),
    Parameter(
        name="queue_size",
        kind="int",
        section="processing",
        default=200,
        minimum=10,
        maximum=100_000,
        description="Messages that wait for a worker. Whatever the number, messages held at once "
        "stay below 64 MiB (a single larger one passes).",
    ),
    Parameter(
        name="max_message_size",
        kind="int",
        section="processing",
        default=10_485_760,
        minimum=1_024,
        maximum=2**30,
        description="Values larger than this many bytes are not processed; they go to the dead "
        "letters.",
    ),
    Parameter(
        name="processing_timeout",
        kind="int/None",
        section="processing",
        minimum=1,
        maximum=3_600,
        description="Seconds a message may take; then it goes to the dead letters, a late result "
        "does not count, and its thread is replaced. None: no limit.",
    ),
    Parameter(
        name="queue_put_timeout",
        kind="int",
        section="processing",
        default=60,
        minimum=1,
        maximum=3_600,
        description="Seconds for which the queue is full before a warning says so. Polling is "
        "held back from the first moment.",
    ),
)

_COMMITS = (
    Parameter(
        name="commit_interval_seconds",
        kind="int",
        section="commits",
        default=5,
        minimum=1,
        maximum=300,
        description="How often offsets are committed: what a crash repeats at most, with what was "
        "in the queue.",
    ),
    Parameter(
        name="commit_on_shutdown",
        kind="bool",
        section="commits",
        default=True,
        description="Commit once more during a shutdown. Without it the next start repeats what "
        "was done since the last commit.",
    ),
    Parameter(
        name="dev_mode",
        kind="bool",
        section="commits",
        default=False,
        description="Never commit and do not join the group: every start reads the same messages "
        "again. Both CSV files are written. Not for production.",
    ),
)

_BACKUP = (
    Parameter(
        name="backup_enabled",
        kind="bool",
        section="backup",
        default=True,
        description="Write every polled message to a CSV file, as well as possible.",
    ),
    Parameter(
        name="backup_path",
        kind="string",
        section="backup",
        default="kafka_backup.csv",
        description="The backup file; its folder must exist. Several instances use different "
        "files.",
    ),
    Parameter(
        name="csv_flush_interval_seconds",
        kind="int",
        section="backup",
        default=5,
        minimum=1,
        maximum=300,
        description="Seconds after which rows of either CSV file are written, however few.",
    ),
    Parameter(
        name="csv_batch_size",
        kind="int",
        section="backup",
        default=1_000,
        minimum=1,
        maximum=100_000,
        description="Rows of the backup after which they are written at once.",
    ),
    Parameter(
        name="backup_on_full",
        kind="enum",
        section="backup",
        default="drop",
        choices=("drop", "block"),
        description="Where the disk is slower than Kafka: drop rows of the backup (counted, with a "
        "warning), or block polling until there is room.",
    ),
)

_DEAD_LETTERS = (
    Parameter(
        name="dlq_path",
        kind="string",
        section="dead letters",
        default="kafka_dlq.csv",
        description="The file of messages that failed; its folder must exist. A row is on disk "
        "before its offset is committed.",
    ),
    Parameter(
        name="dlq_csv_batch_size",
        kind="int",
        section="dead letters",
        default=100,
        minimum=1,
        maximum=100_000,
        description="Rows after which they are written at once, at most a quarter of what may be "
        "held.",
    ),
    Parameter(
        name="dlq_on_error",
        kind="enum",
        section="dead letters",
        default="hold",
        choices=("hold", "skip"),
        description="Where the file cannot be written: hold the messages until it can, or skip "
        "them (their places are logged; they are lost).",
    ),
)

_SHUTDOWN = (
    Parameter(
        name="shutdown_timeout_seconds",
        kind="int",
        section="shutdown",
        default=30,
        minimum=5,
        maximum=300,
        description="How long a shutdown waits for what is being processed.",
    ),
    Parameter(
        name="shutdown_drain_queue",
        kind="bool",
        section="shutdown",
        default=True,
        description="Process what waits in the queue before a shutdown ends. Without it only "
        "running messages are waited for.",
    ),
    Parameter(
        name="stop_at_offset",
        kind="dict",
        section="shutdown",
        description="Where to stop, exclusive (100 processes 0 to 99): {(topic, partition): "
        'offset}, or "topic:partition" as keys.',
    ),
    Parameter(
        name="stop_at_offset_mode",
        kind="enum",
        section="shutdown",
        default="any",
        choices=("any", "all"),
        description="Stop when any of stop_at_offset is reached, or when all are.",
    ),
)

_LOGGING = (
    Parameter(
        name="log_level",
        kind="enum",
        section="logging",
        default="INFO",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        description="The least level that is logged: DEBUG, INFO, WARNING or ERROR.",
    ),
    Parameter(
        name="mod_name",
        kind="string",
        section="logging",
        default="kafka_consumer",
        description="The instance's name in every line of the log.",
    ),
)

PARAMETERS = (
    *(*_REQUIRED, *_KAFKA, *_PROCESSING, *_COMMITS),
    *(*_BACKUP, *_DEAD_LETTERS, *_SHUTDOWN, *_LOGGING),
)
