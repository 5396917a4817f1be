"""One real Kafka per test process, shared by every test that needs no cluster of its own."""

from collections.abc import Iterator

import pytest

from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.trial import TrialCluster, missing
from forebay.broker.settings import KafkaSettings
from forebay.observability.catalogue import silent


@pytest.fixture(scope="session")
def kafka() -> Iterator[TrialCluster]:
    yield from running_cluster(TrialCluster())


@pytest.fixture
def kafka_broker(kafka: TrialCluster) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(KafkaSettings(kafka.bootstrap), silent)
    yield broker
    broker.close()


def running_cluster(cluster: TrialCluster) -> Iterator[TrialCluster]:
    if complaint := missing():
        cluster.stop()
        pytest.skip(f"needs a real Kafka: {complaint}")
    with cluster:
        yield cluster
