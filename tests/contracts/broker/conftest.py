from collections.abc import Iterator

import pytest

from contracts.broker.adapters import (
    Adapter,
    Asked,
    embedded_adapter,
    kafka_adapter,
    memory_adapter,
)
from contracts.broker.stories import unique
from forebay.broker.kafka.trial import TrialCluster
from forebay.broker.port import Admin, Broker
from kafka_fixtures import kafka, running_cluster  # noqa: F401  one Kafka for all of a process


@pytest.fixture
def adapter(request: pytest.FixtureRequest, tmp_path) -> Iterator[Adapter]:
    adapter = _open(request, tmp_path)
    yield adapter
    adapter.broker.close()


@pytest.fixture
def broker(adapter: Adapter) -> Broker:
    return adapter.broker


@pytest.fixture
def admin(broker: Broker) -> Admin:
    return broker.admin()


@pytest.fixture
def group() -> str:
    return unique("group")


@pytest.fixture
def own_kafka() -> Iterator[TrialCluster]:
    yield from running_cluster(TrialCluster())


def _open(request: pytest.FixtureRequest, tmp_path) -> Adapter:
    asked: Asked = request.param
    match asked.name:
        case "memory":
            return memory_adapter()
        case "kafka":
            cluster = "own_kafka" if asked.own else "kafka"
            return kafka_adapter(request.getfixturevalue(cluster))
        case _:
            return embedded_adapter(tmp_path / "broker", gappy=asked.name == "gappy")
