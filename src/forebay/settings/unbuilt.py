"""Names that people have in their files and environments for parts that are not built yet.

They are no mistakes, so nothing fails; that they do nothing is said once.
"""

_STAGES = (
    *("event_ingester", "event_writer", "download", "upload"),
    *("result_processor", "failed_writer", "retry_scheduler"),
)
_PER_STAGE = (
    *("consumer", "producer"),
    *("processing.concurrency", "processing.batch_size"),
    *("processing.timeout_seconds", "processing.health_port"),
)

UNUSED_KEYS: frozenset[str] = frozenset(
    {
        *("event_source", "dummy", "logging.dir", "health.enabled", "kafka.producer_defaults"),
        *("claimx", "claimx_eventhouse", "kafka.claimx", "delta.claimx"),
        *("storage.onelake_domain_paths.claimx", "kafka.xact.topics.enrichment_pending"),
        *("kafka.consumer_defaults.auto_offset_reset", "kafka.consumer_defaults.fetch_min_bytes"),
        *(
            "kafka.consumer_defaults.enable_auto_commit",
            "kafka.consumer_defaults.fetch_max_wait_ms",
        ),
        *("kafka.consumer_defaults.max_poll_records",),
        *("xact_eventhouse.cluster_url", "xact_eventhouse.database", "xact_eventhouse.poller"),
        *("xact_eventhouse.query_timeout_seconds",),
        *("xact_eventhouse.dedup.eventhouse_query_window_hours",),
        *("xact_eventhouse.dedup.overlap_minutes",),
        *("xact_eventhouse.dedup.max_trace_ids_per_query",),
        *(f"kafka.xact.{stage}.{name}" for stage in _STAGES for name in _PER_STAGE),
    }
)
UNUSED_VARIABLES = (
    *("EVENT_SOURCE", "EVENTHUB_BOOTSTRAP_SERVERS", "EVENTHUB_EVENTS_TOPIC"),
    *("EVENTHUB_CONSUMER_GROUP", "EVENTHOUSE_CLUSTER_URL", "EVENTHOUSE_DATABASE"),
    *("EVENTHOUSE_SOURCE_TABLE", "EVENTHOUSE_QUERY_TIMEOUT"),
    *("LOCAL_KAFKA_BOOTSTRAP_SERVERS", "LOCAL_KAFKA_SECURITY_PROTOCOL"),
    *("CLAIMX_API_URL", "CLAIMX_API_TOKEN", "CLAIMX_API_USERNAME", "CLAIMX_API_PASSWORD"),
    *("CLAIMX_API_TIMEOUT_SECONDS", "CLAIMX_API_CONCURRENCY", "ONELAKE_CLAIMX_PATH"),
    *("KAFKA_MAX_POLL_RECORDS", "DOWNLOAD_BATCH_SIZE", "LOG_DIR"),
)
