import uuid

import pytest

from forebay.bootstrap import connect
from kafka_fixtures import running_cluster
from mod_place import ModPlace
from scenarios.mod.processes import ModProcesses


@pytest.fixture
def mod(kafka, tmp_path):
    """The mod in this process, on a real Kafka, with a topic of four partitions."""
    name = f"orders-{uuid.uuid4().hex[:6]}"
    broker = connect(f"kafka://{kafka.bootstrap}")
    place = ModPlace(tmp_path, broker, kafka.bootstrap, topic=name, group=f"{name}.group")
    place.create(partitions=4)
    yield place
    place.close()


@pytest.fixture
def processes(mod, bytecode):
    """The mod in processes of its own, through the command line."""
    started = ModProcesses(mod, bytecode)
    yield started
    started.close()


@pytest.fixture
def own_kafka():
    """For who kills it."""
    from forebay.broker.kafka.trial import TrialCluster

    yield from running_cluster(TrialCluster())


@pytest.fixture
def own_large_kafka():
    """One that takes messages of more than 100 MB."""
    from forebay.broker.kafka.trial import TrialCluster

    limit = str(110 * 2**20)
    overrides = {
        "message.max.bytes": limit,
        "replica.fetch.max.bytes": limit,
        "socket.request.max.bytes": limit,
    }
    yield from running_cluster(TrialCluster(overrides=overrides))
