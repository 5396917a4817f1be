import subprocess

import pytest

from contracts.broker.stories import new_topic, numbered, partitions_of, produce, read_from_start
from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.listeners import Listener, plain
from forebay.broker.kafka.trial import TrialCluster
from forebay.broker.settings import KafkaSettings, Secret
from forebay.core.errors import Unusable
from forebay.observability.catalogue import silent
from kafka_fixtures import running_cluster


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a certificate for loopback that signs itself; the broker wants both in a file."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "both.pem").write_text(key.read_text() + certificate.read_text())
    return certificate


@pytest.fixture(scope="module")
def encrypted(certificate):
    listener = Listener(
        "SASL_SSL",
        plain({"alice": "alice-secret"}),
        key_and_certificate=certificate.with_name("both.pem"),
    )
    yield from running_cluster(TrialCluster(listener=listener))


def settings_for(cluster, ca_file):
    return KafkaSettings(
        cluster.bootstrap,
        "SASL_SSL",
        "PLAIN",
        "alice",
        Secret("alice-secret"),
        ca_file=ca_file,
    )


def test_records_travel_over_tls_to_a_broker_whose_certificate_is_trusted(encrypted, certificate):
    broker = KafkaBroker(settings_for(encrypted, certificate), silent)
    topic = new_topic(broker)
    produce(broker, numbered(topic, 3))
    assert len(read_from_start(broker, partitions_of(topic, 1))) == 3
    broker.close()


def test_a_certificate_that_nobody_vouches_for_is_refused_with_the_setting_to_mend(encrypted):
    broker = KafkaBroker(settings_for(encrypted, None), silent)
    with pytest.raises(Unusable, match="ca_file"):
        broker.admin().describe_topics()
    broker.close()
