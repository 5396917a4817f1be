"""The mod's parameters as checked values."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forebay.core.records import Offset, TopicPartition
from forebay.mods.kafka_consumer.processing import UserFunction
from forebay.observability.catalogue import Level
from forebay.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """`given` names what the caller set; `settings` say what bootstrap_servers means."""

    given: frozenset[str]
    settings: Settings
    bootstrap_servers: str
    topics: tuple[str, ...]
    group_id: str
    processor: UserFunction
    poll_timeout_ms: int
    max_poll_records: int
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    auto_offset_reset: Literal["earliest", "latest"]
    isolation_level: Literal["read_uncommitted", "read_committed"]
    worker_count: int
    queue_size: int
    max_message_size: int
    processing_timeout: int | None
    queue_put_timeout: int
    commit_interval_seconds: int
    commit_on_shutdown: bool
    dev_mode: bool
    backup_enabled: bool
    backup_path: Path
    csv_flush_interval_seconds: int
    csv_batch_size: int
    backup_on_full: Literal["drop", "block"]
    dlq_path: Path
    dlq_csv_batch_size: int
    dlq_on_error: Literal["hold", "skip"]
    shutdown_timeout_seconds: int
    shutdown_drain_queue: bool
    stop_at_offset: Mapping[TopicPartition, Offset]
    stop_at_offset_mode: Literal["any", "all"]
    log_level: Level
    mod_name: str

    @property
    def window(self) -> int:
        """Messages held at once: those in the queue and those being processed."""
        return self.queue_size + self.worker_count
