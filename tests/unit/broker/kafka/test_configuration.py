from pathlib import Path

import pytest

from forebay.broker.kafka.configuration import (
    BATCH_BYTES,
    event_hubs,
    for_client,
    for_consumer,
    for_producer,
)
from forebay.broker.settings import (
    ConsumerSettings,
    KafkaSettings,
    ProducerSettings,
    Secret,
    Token,
)
from forebay.core.errors import Unusable

KAFKA = KafkaSettings("broker:9092")
CONNECTION_STRING = Secret(
    "Endpoint=sb://claims.servicebus.windows.net/;SharedAccessKeyName=reader;"
    "SharedAccessKey=c2VjcmV0;EntityPath=xact"
)


def test_a_producer_is_idempotent_or_a_killed_broker_doubles_records():
    configuration = for_producer(KAFKA, ProducerSettings())
    assert configuration["enable.idempotence"] is True
    assert configuration["acks"] == "all"


def test_a_producer_partitions_keys_as_kafka_does():
    assert for_producer(KAFKA, ProducerSettings())["partitioner"] == "murmur2_random"


def test_a_producer_takes_the_largest_record_with_its_frame_and_sends_small_batches():
    configuration = for_producer(KAFKA, ProducerSettings())
    assert configuration["message.max.bytes"] > KAFKA.record_bytes_max
    assert configuration["batch.size"] == BATCH_BYTES


def test_a_producers_buffer_is_bounded_by_its_settings():
    settings = ProducerSettings(pending_records_max=7, pending_bytes_max=5 * 2**20)
    configuration = for_producer(KAFKA, settings)
    assert configuration["queue.buffering.max.messages"] == 7
    assert configuration["queue.buffering.max.kbytes"] == 5 * 1024


def test_an_unknown_topic_is_not_waited_for_for_thirty_seconds():
    assert for_producer(KAFKA, ProducerSettings())["topic.metadata.propagation.max.ms"] == 500


def test_a_consumer_commits_nothing_and_resets_nothing_by_itself():
    configuration = for_consumer(KAFKA, "group", ConsumerSettings())
    assert configuration["enable.auto.commit"] is False
    assert configuration["enable.auto.offset.store"] is False
    assert configuration["auto.offset.reset"] == "error"
    assert configuration["allow.auto.create.topics"] is False


def test_a_full_prefetch_queue_does_not_stop_the_fetcher_for_a_second():
    configuration = for_consumer(KAFKA, "group", ConsumerSettings(prefetch_bytes_max=2**20))
    assert configuration["queued.max.messages.kbytes"] == 1024
    assert configuration["fetch.queue.backoff.ms"] == 10
    assert configuration["fetch.wait.max.ms"] <= 100


def test_a_prefetch_smaller_than_a_record_still_lets_the_record_through():
    configuration = for_consumer(KAFKA, "group", ConsumerSettings(prefetch_bytes_max=1024))
    assert configuration["max.partition.fetch.bytes"] > KAFKA.record_bytes_max
    assert configuration["fetch.max.bytes"] >= configuration["max.partition.fetch.bytes"]
    assert configuration["receive.message.max.bytes"] > configuration["fetch.max.bytes"]


def test_members_rebalance_cooperatively_unless_the_newer_protocol_is_asked_for():
    classic = for_consumer(KAFKA, "group", ConsumerSettings())
    newer = for_consumer(KAFKA, "group", ConsumerSettings(group_protocol="consumer"))
    assert classic["partition.assignment.strategy"] == "cooperative-sticky"
    assert classic["session.timeout.ms"] == 10_000
    assert newer["group.protocol"] == "consumer"
    assert not {"partition.assignment.strategy", "session.timeout.ms"} & newer.keys()


def test_a_consumer_without_a_group_has_a_name_that_is_nobodys():
    assert for_consumer(KAFKA, None, ConsumerSettings())["group.id"] == "forebay-without-a-group"


def test_plain_text_has_no_empty_credentials_in_it():
    names = for_client(KAFKA)
    assert not [name for name in names if name.startswith(("sasl", "ssl", "oauth"))]


def test_credentials_and_certificates_reach_the_client():
    settings = KafkaSettings(
        "broker:9093",
        "SASL_SSL",
        "SCRAM-SHA-512",
        "alice",
        Secret("word"),
        ca_file=Path("/ca.pem"),
        certificate_file=Path("/certificate.pem"),
        key_file=Path("/key.pem"),
        key_password=Secret("opens"),
    )
    configuration = for_client(settings)
    assert configuration["security.protocol"] == "SASL_SSL"
    assert configuration["sasl.mechanisms"] == "SCRAM-SHA-512"
    assert (configuration["sasl.username"], configuration["sasl.password"]) == ("alice", "word")
    assert configuration["ssl.ca.location"] == "/ca.pem"
    assert configuration["ssl.certificate.location"] == "/certificate.pem"
    assert (configuration["ssl.key.location"], configuration["ssl.key.password"]) == (
        "/key.pem",
        "opens",
    )


def test_a_token_reaches_the_client_with_its_expiry_principal_and_extensions():
    token = Token(Secret("abc"), 1_700_000_000.5, "forebay", {"tenant": "claims"})
    settings = KafkaSettings("broker:9093", "SASL_SSL", "OAUTHBEARER", token=lambda: token)
    answer = for_client(settings)["oauth_cb"]("")
    assert answer == ("abc", 1_700_000_000.5, "forebay", {"tenant": "claims"})


def test_event_hubs_are_reached_with_their_connection_string_as_the_password():
    settings = event_hubs(CONNECTION_STRING)
    configuration = for_client(settings)
    assert configuration["bootstrap.servers"] == "claims.servicebus.windows.net:9093"
    assert configuration["security.protocol"] == "SASL_SSL"
    assert configuration["sasl.mechanisms"] == "PLAIN"
    assert configuration["sasl.username"] == "$ConnectionString"
    assert configuration["sasl.password"] == CONNECTION_STRING.reveal
    assert "c2VjcmV0" not in repr(settings)


def test_event_hubs_close_idle_connections_after_240_seconds_and_ours_go_before():
    configuration = for_client(event_hubs(CONNECTION_STRING))
    assert configuration["connections.max.idle.ms"] < 240_000
    assert configuration["metadata.max.age.ms"] < 240_000
    assert configuration["socket.timeout.ms"] == 60_000


def test_event_hubs_take_no_new_topics_and_no_record_above_their_limit():
    settings = event_hubs(CONNECTION_STRING)
    assert settings.may_create_topics is False
    assert settings.record_bytes_max <= 1024 * 1024


def test_a_connection_string_without_an_endpoint_is_refused_without_showing_it():
    with pytest.raises(Unusable, match="Endpoint=sb://") as refused:
        event_hubs(Secret("SharedAccessKey=c2VjcmV0"))
    assert "c2VjcmV0" not in str(refused.value)
