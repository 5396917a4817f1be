"""The events of the kafka_consumer mod. Their words and fields are those of its document."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

ModLevel: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]

ModEventName: TypeAlias = Literal[
    "backup.closed",
    "backup.dropping",
    "backup.failed",
    "backup.lost",
    "backup.written",
    "mod.all_started",
    "mod.backpressure",
    "mod.batch_polled",
    "mod.commit_failed",
    "mod.dev_mode_enabled",
    "mod.dev_mode_final_commit_skipped",
    "mod.dev_mode_would_have_committed",
    "mod.dlq_batch_written",
    "mod.dlq_write_failed",
    "mod.draining",
    "mod.failed",
    "mod.final_commit",
    "mod.final_commit_skipped",
    "mod.gap",
    "mod.message_failed",
    "mod.message_processed",
    "mod.message_too_large",
    "mod.no_effect",
    "mod.no_signal_handlers",
    "mod.offsets_committed",
    "mod.polling_stopped",
    "mod.shutdown_complete",
    "mod.shutdown_initiated",
    "mod.starting",
    "mod.starts_at_end",
    "mod.stop_at_offset_configured",
    "mod.stop_at_offset_passed",
    "mod.stop_at_offset_reached",
    "mod.topic_missing",
    "mod.waiting",
    "mod.workers_stopped",
    "mod.workers_stuck",
]

_RECORD = ("topic", "partition", "offset", "processing_time_ms", "worker_id")
_ERROR = ("error_type", "error_message")

# Level, words, fields.
MOD_EVENTS: Mapping[ModEventName, tuple[ModLevel, str, tuple[str, ...]]] = {
    "backup.closed": (
        "info",
        "Final backup CSV flush",
        ("file_path", "backed_up", "backup_dropped"),
    ),
    "backup.dropping": (
        "warning",
        (
            "Backup CSV queue full, dropping backup entries. {backup_dropped} were not backed up "
            "so far; the messages themselves are processed as ever."
        ),
        ("file_path", "queue_bytes", "queue_bytes_max", "backup_dropped"),
    ),
    "backup.failed": (
        "error",
        (
            "Backup CSV write error: {error_message} {messages_held} rows are held and tried "
            "again; what does not fit is dropped and counted."
        ),
        ("error_message", "file_path", "messages_held", "backup_dropped"),
    ),
    "backup.lost": (
        "error",
        (
            "{messages_lost} messages were not backed up in {file_path} when the consumer ended. "
            "{error_message}"
        ),
        ("messages_lost", "file_path", "error_message"),
    ),
    "backup.written": (
        "debug",
        "Backup CSV batch written",
        ("messages_written", "file_path", "write_time_ms"),
    ),
    "mod.all_started": ("info", "All components started", ("total_threads",)),
    "mod.backpressure": (
        "warning",
        "Processing queue full, backpressure applied",
        ("queue_size", "queue_capacity", "full_seconds"),
    ),
    "mod.batch_polled": (
        "debug",
        "Batch polled",
        ("batch_size", "partitions", "offset_range", "poll_time_ms"),
    ),
    "mod.commit_failed": ("error", "Commit failed", ("partitions", *_ERROR)),
    "mod.dev_mode_enabled": (
        "warning",
        "Dev mode enabled - offsets will NOT be committed",
        (),
    ),
    "mod.dev_mode_final_commit_skipped": (
        "info",
        "Dev mode - final commit skipped",
        ("messages_processed",),
    ),
    "mod.dev_mode_would_have_committed": (
        "info",
        "Dev mode - would have committed offsets",
        ("partition_offsets", "messages_processed"),
    ),
    "mod.dlq_batch_written": (
        "info",
        "DLQ CSV batch written",
        ("failures_written", "file_path", "write_time_ms"),
    ),
    "mod.dlq_write_failed": (
        "error",
        "DLQ CSV write error",
        ("file_path", "reason", "failures_held", "failures_skipped", "messages"),
    ),
    "mod.draining": ("info", "Draining processing queue", ("messages_remaining",)),
    "mod.failed": ("critical", "Kafka consumer failed", (*_ERROR, "stack_trace")),
    "mod.final_commit": ("info", "Final commit", ("partition_offsets", "messages_committed")),
    "mod.final_commit_skipped": (
        "info",
        "Final commit skipped - commit_on_shutdown is False",
        ("partition_offsets", "messages_committed"),
    ),
    "mod.gap": (
        "warning",
        "Gap in processed offsets",
        ("topic", "partition", "committed_offset", "gap_at", "uncommitted_count"),
    ),
    "mod.message_failed": (
        "error",
        "Message processing failed",
        (*_RECORD, *_ERROR, "stack_trace"),
    ),
    "mod.message_processed": ("info", "Message processed successfully", _RECORD),
    "mod.message_too_large": (
        "warning",
        "Message too large, skipping",
        ("topic", "partition", "offset", "size", "max_size"),
    ),
    "mod.no_effect": (
        "info",
        "The embedded broker has no use for {parameters}; they have no effect here.",
        ("parameters",),
    ),
    "mod.no_signal_handlers": (
        "info",
        "This is not the main thread, so no signal handlers are set; stop= ends the consumer.",
        (),
    ),
    "mod.offsets_committed": (
        "info",
        "Offsets committed",
        ("partition_offsets", "messages_committed", "commit_time_ms"),
    ),
    "mod.polling_stopped": ("info", "Polling thread stopped", ()),
    "mod.shutdown_complete": (
        "info",
        "Shutdown complete",
        ("total_duration_ms", "messages_committed", "clean_shutdown", "dev_mode"),
    ),
    "mod.shutdown_initiated": (
        "info",
        "Shutdown initiated",
        ("signal", "queue_depth", "active_workers", "reason"),
    ),
    "mod.starting": (
        "info",
        "Kafka consumer starting",
        ("bootstrap_servers", "topics", "group_id", "worker_count", "dev_mode", "stop_at_offset"),
    ),
    "mod.starts_at_end": (
        "warning",
        (
            "Group {group_id} has no commit on {topics} and auto_offset_reset is latest: "
            "{messages} existing messages will not be read. For those, set auto_offset_reset to "
            "earliest."
        ),
        ("group_id", "topics", "messages"),
    ),
    "mod.stop_at_offset_configured": ("info", "Stop at offset configured", ("targets", "mode")),
    "mod.stop_at_offset_passed": (
        "warning",
        (
            "The target {target_offset} of {topic}[{partition}] is passed already: the group "
            "goes on at {offset}. Nothing is processed there; set a later target."
        ),
        ("topic", "partition", "offset", "target_offset"),
    ),
    "mod.stop_at_offset_reached": (
        "info",
        "Stop at offset reached, triggering shutdown",
        ("topic", "partition", "offset", "target_offset"),
    ),
    "mod.topic_missing": (
        "warning",
        "Topic {topic} does not exist yet; it is waited for.",
        ("topic",),
    ),
    "mod.waiting": ("warning", "Waiting to start; nothing is lost. {reason}", ("reason",)),
    "mod.workers_stopped": ("info", "All workers stopped", ("duration_ms",)),
    "mod.workers_stuck": (
        "error",
        (
            "{stuck} of {worker_count} workers did not return within processing_timeout and were "
            "replaced. Look at what processor_callable waits for."
        ),
        ("stuck", "worker_count"),
    ),
}
