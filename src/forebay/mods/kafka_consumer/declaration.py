"""The mod on one page: a pipeline of one stage, and how it is to be driven."""

from collections.abc import Mapping

from forebay.broker.settings import ConsumerSettings
from forebay.core.backpressure import Bounds
from forebay.core.batches import BatchRule
from forebay.core.records import Offset, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.engine.doors import LoopOptions
from forebay.engine.pipeline import Pipeline
from forebay.engine.run import Until
from forebay.engine.stages import RecordStage
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.messages import STOPS_ON, Messages

STAGE = "process"
POLL_SECONDS_MAX = 1.0
RESPONSE_BYTES_MAX = 2**31 - 1  # a message that is too large is dead-lettered, so it is read first

_SPAN = 10_000


def pipeline_of(configuration: Configuration, messages: Messages) -> Pipeline:
    window = configuration.window
    batch = min(configuration.dlq_csv_batch_size, max(1, window // 4))
    stage = RecordStage(
        name=STAGE,
        reads=configuration.topics,
        run=messages.handle,
        group=configuration.group_id,
        concurrency=configuration.worker_count,
        retry=RetryPolicy(()),
        dead_letters=configuration.dlq_path,
        letter_batch=BatchRule(batch, configuration.csv_flush_interval_seconds, records_max=batch),
        timeout_seconds=configuration.processing_timeout,
        start_at=configuration.auto_offset_reset,
        commit_seconds=configuration.commit_interval_seconds,
        bounds=Bounds(records=window, span=max(_SPAN, window)),
        stops_on=STOPS_ON,
    )
    return Pipeline("kafka-consumer", stages=[stage])


def options_of(
    configuration: Configuration, by_hand: Mapping[TopicPartition, Offset] | None
) -> LoopOptions:
    return LoopOptions(
        by_hand=by_hand,
        stops_at=configuration.stop_at_offset_mode,
        drain_seconds=configuration.shutdown_timeout_seconds,
        revoke_seconds=configuration.max_poll_interval_ms / 1000 / 3,
        drains_queue=configuration.shutdown_drain_queue,
        commits_at_end=configuration.commit_on_shutdown,
        commits_when_idle_after_seconds=configuration.commit_interval_seconds,
        idle_seconds=min(configuration.poll_timeout_ms / 1000, POLL_SECONDS_MAX),
    )


def until_of(configuration: Configuration) -> Until:
    return Until(stops=configuration.stop_at_offset)


def client_of(configuration: Configuration) -> ConsumerSettings:
    return ConsumerSettings(
        session_timeout_seconds=configuration.session_timeout_ms / 1000,
        heartbeat_seconds=configuration.heartbeat_interval_ms / 1000,
        poll_interval_max_seconds=configuration.max_poll_interval_ms / 1000,
        isolation_level=configuration.isolation_level,
        response_bytes_max=RESPONSE_BYTES_MAX,
    )
