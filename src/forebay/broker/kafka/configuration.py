"""Settings as librdkafka's configuration. Pure, so that every pinned value has a test."""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from forebay.broker.settings import ConsumerSettings, KafkaSettings, ProducerSettings, Secret, Token
from forebay.core.errors import Unusable

Configuration: TypeAlias = dict[str, Any]

# What a record weighs beyond size_bytes: lengths, offsets, the batch's header.
_OVERHEAD_BYTES = 64 * 1024

# Above a topic's max.message.bytes the broker refuses a whole batch, good records included; topics
# below this size are rare and sent to with care.
BATCH_BYTES = 128 * 1024

_EVENT_HUBS_RECORD_BYTES_MAX = 1_000_000
_EVENT_HUBS_HOST = re.compile(r"(?:^|;)\s*Endpoint=sb://([^/;]+)", re.IGNORECASE)


def event_hubs(
    connection_string: Secret, *, record_bytes_max: int = _EVENT_HUBS_RECORD_BYTES_MAX
) -> KafkaSettings:
    """Azure Event Hubs through its Kafka endpoint.

    It closes connections that were idle for 240 s, answers slowly when throttled, and takes no
    new topics from Kafka clients.
    """
    host = _EVENT_HUBS_HOST.search(connection_string.reveal)
    if host is None:
        raise Unusable(
            "The Event Hubs connection string has no Endpoint=sb://…; copy it whole from the "
            "namespace's shared access policy."
        )
    return KafkaSettings(
        f"{host.group(1)}:9093",
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        username="$ConnectionString",
        password=connection_string,
        record_bytes_max=record_bytes_max,
        may_create_topics=False,
        connection_idle_seconds=180.0,
        metadata_max_age_seconds=180.0,
        request_timeout_seconds=60.0,
    )


def for_client(settings: KafkaSettings) -> Configuration:
    """`log_level` 0: what the client would print reaches us through its error callback.

    A client that starts over from its bootstrap servers, as it does by default after some seconds
    without a node, never finds its group's coordinator again.
    """
    metadata_ms = _milliseconds(settings.metadata_max_age_seconds)
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": "forebay",
        "socket.keepalive.enable": True,
        "socket.connection.setup.timeout.ms": 5_000,
        "socket.timeout.ms": _milliseconds(settings.request_timeout_seconds),
        "connections.max.idle.ms": _milliseconds(settings.connection_idle_seconds),
        "metadata.max.age.ms": metadata_ms,
        "topic.metadata.refresh.interval.ms": metadata_ms,
        "metadata.recovery.strategy": "none",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "allow.auto.create.topics": False,
        "log_level": 0,
        **_security(settings),
    }


def for_producer(settings: KafkaSettings, producer: ProducerSettings) -> Configuration:
    """Idempotence is off by default in librdkafka, and a killed broker then doubles records."""
    pending_kib = max(1, producer.pending_bytes_max // 1024)
    return {
        **for_client(settings),
        "enable.idempotence": True,
        "acks": "all",
        "partitioner": "murmur2_random",
        "linger.ms": producer.linger_seconds * 1000,
        "delivery.timeout.ms": _milliseconds(producer.delivery_timeout_seconds),
        "message.max.bytes": settings.record_bytes_max + _OVERHEAD_BYTES,
        "queue.buffering.max.messages": producer.pending_records_max,
        "queue.buffering.max.kbytes": pending_kib,
        "topic.metadata.propagation.max.ms": 500,
        "batch.size": BATCH_BYTES,
        "sticky.partitioning.linger.ms": 0,
    }


def for_consumer(
    settings: KafkaSettings, group: str | None, consumer: ConsumerSettings
) -> Configuration:
    """A full local queue stops the fetcher for `fetch.queue.backoff.ms`, by default a second."""
    record_bytes_max = settings.record_bytes_max + _OVERHEAD_BYTES
    fetch_bytes = max(record_bytes_max, min(consumer.prefetch_bytes_max, 2**20))
    response_bytes = max(fetch_bytes, consumer.prefetch_bytes_max // 4)
    metadata_ms = _milliseconds(
        min(consumer.metadata_refresh_seconds, settings.metadata_max_age_seconds)
    )
    return {
        **for_client(settings),
        "client.id": consumer.client_id,
        "group.id": group or "forebay-without-a-group",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "isolation.level": consumer.isolation_level,
        "fetch.wait.max.ms": 50,
        "fetch.queue.backoff.ms": 10,
        "fetch.max.bytes": response_bytes,
        "max.partition.fetch.bytes": fetch_bytes,
        "receive.message.max.bytes": max(consumer.response_bytes_max, response_bytes + 2**20),
        "queued.min.messages": 20_000,
        "queued.max.messages.kbytes": max(1, consumer.prefetch_bytes_max // 1024),
        "max.poll.interval.ms": _milliseconds(consumer.poll_interval_max_seconds),
        "topic.metadata.refresh.interval.ms": metadata_ms,
        "topic.metadata.propagation.max.ms": 1_000,
        **_membership(consumer),
    }


def _membership(consumer: ConsumerSettings) -> Configuration:
    """The newer protocol keeps session and heartbeat at the broker and refuses ours."""
    if consumer.group_protocol == "consumer":
        return {"group.protocol": "consumer"}
    return {
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": _milliseconds(consumer.session_timeout_seconds),
        "heartbeat.interval.ms": _milliseconds(consumer.heartbeat_seconds),
    }


def _security(settings: KafkaSettings) -> Configuration:
    password = settings.password and settings.password.reveal
    key_password = settings.key_password and settings.key_password.reveal
    named = {
        "security.protocol": settings.security_protocol,
        "sasl.mechanisms": settings.sasl_mechanism,
        "sasl.username": settings.username,
        "sasl.password": password,
        "ssl.ca.location": settings.ca_file and str(settings.ca_file),
        "ssl.certificate.location": settings.certificate_file and str(settings.certificate_file),
        "ssl.key.location": settings.key_file and str(settings.key_file),
        "ssl.key.password": key_password,
        "oauth_cb": settings.token and _token_callback(settings.token),
    }
    return {name: value for name, value in named.items() if value is not None}


def _token_callback(token: Callable[[], Token]) -> Callable[[str], tuple[Any, ...]]:
    def answer(_client_configuration: str) -> tuple[Any, ...]:
        given = token()
        extensions = dict(given.extensions)
        return (given.value.reveal, given.expires_at, given.principal, extensions)

    return answer


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
