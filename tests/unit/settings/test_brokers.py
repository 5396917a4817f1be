from pathlib import Path

import pytest

from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.core.errors import Unusable
from forebay.settings import EventHubs, Flags, TrialKafka, read_settings


def broker(url=None, environment=None, **flags):
    return read_settings(Flags(broker=url, **flags), environment or {}).broker


def refusal(url=None, environment=None, **flags):
    with pytest.raises(Unusable) as caught:
        read_settings(Flags(broker=url, **flags), environment or {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("embedded:here", "here"),
        ("embedded:./here/there", "here/there"),
        ("embedded:///var/lib/x", "/var/lib/x"),
        ("embedded:/var/lib/x", "/var/lib/x"),
        ("embedded", "forebay-data"),
    ],
)
def test_an_embedded_broker_lives_in_the_folder_named(url, folder):
    assert broker(url) == EmbeddedSettings(Path(folder))


def test_without_a_word_the_broker_is_embedded_in_the_data_folder():
    assert broker() == EmbeddedSettings(Path("forebay-data"))
    assert broker(folder=Path("elsewhere")) == EmbeddedSettings(Path("elsewhere"))


def test_kafka_by_address_and_kafka_for_a_trial_are_not_mixed_up():
    assert broker("kafka://a:9092, b:9093") == KafkaSettings("a:9092,b:9093")
    assert broker("kafka://[::1]:9092") == KafkaSettings("[::1]:9092")
    assert broker("kafka") == TrialKafka()


def test_a_flag_wins_over_the_environment_and_that_over_the_default():
    environment = {"FOREBAY_BROKER": "kafka", "KAFKA_BOOTSTRAP_SERVERS": "k:1"}
    assert broker("embedded:x", environment) == EmbeddedSettings(Path("x"))
    assert broker(None, environment) == TrialKafka()
    del environment["FOREBAY_BROKER"]
    assert broker(None, environment) == KafkaSettings("k:1")


def test_an_empty_variable_counts_as_unset():
    assert broker(None, {"FOREBAY_BROKER": " "}) == EmbeddedSettings(Path("forebay-data"))


def test_credentials_come_from_the_environment_and_are_never_shown():
    settings = broker(
        "kafka://k:1",
        {
            "KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
            "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "KAFKA_SASL_PLAIN_USERNAME": "app",
            "KAFKA_SASL_PLAIN_PASSWORD": "hunter2",
        },
    )
    assert settings.password.reveal == "hunter2"
    assert settings.security_protocol == "SASL_SSL"
    assert "hunter2" not in repr(settings)


def test_event_hubs_needs_its_connection_string():
    assert "EVENTHUB_CONNECTION_STRING" in refusal("eventhub")
    chosen = broker("eventhub", {"EVENTHUB_CONNECTION_STRING": "Endpoint=sb://x/;…"})
    assert isinstance(chosen, EventHubs)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://x", "names no broker"),
        ("embedded:", "without a folder"),
        ("embedded://host", "embedded:host for a folder here"),
        ("kafka://", "is not host:port"),
        ("kafka://h", "is not host:port"),
        ("kafka://h:0", "no port between"),
        ("kafka://h:99999", "no port between"),
        ("kafka://h:1/x", "has a path"),
        ("kafka://u:hunter2@h:1", "holds no credentials"),
        ("", "names no broker"),
    ],
)
def test_a_broker_that_makes_no_sense_is_refused_with_what_to_write(url, says):
    message = refusal(url)
    assert says in message
    assert "write" in message.lower()
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "KAFKA_SASL_MECHANISM is not set"),
        ({"KAFKA_SASL_MECHANISM": "PLAIN"}, "KAFKA_SECURITY_PROTOCOL is PLAINTEXT"),
        ({"KAFKA_SSL_CAFILE": "/nowhere/ca.pem"}, "where no file is"),
        (
            {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "PLAIN"},
            "needs credentials",
        ),
        (
            {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "OAUTHBEARER"},
            "token provider",
        ),
    ],
)
def test_a_security_setting_that_cannot_work_is_refused_at_start(environment, says):
    assert says in refusal("kafka://k:1", environment)
