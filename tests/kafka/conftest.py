from collections.abc import Iterator

import pytest

from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.trial import TrialCluster
from forebay.broker.settings import KafkaSettings
from forebay.observability.catalogue import silent
from kafka_fixtures import kafka, kafka_broker, running_cluster  # noqa: F401


@pytest.fixture
def own_kafka() -> Iterator[TrialCluster]:
    """For tests that kill it."""
    yield from running_cluster(TrialCluster())


@pytest.fixture
def own_broker(own_kafka: TrialCluster) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(KafkaSettings(own_kafka.bootstrap), silent)
    yield broker
    broker.close()
