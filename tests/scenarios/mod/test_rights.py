"""The mod needs no right but to read its topics and to commit in its group."""

import threading

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from forebay.bootstrap import connect
from forebay.broker.kafka.listeners import Listener, plain
from forebay.broker.kafka.trial import TrialCluster
from forebay.mods.kafka_consumer.consumer_run import run_consumer
from forebay.mods.kafka_consumer.stopping import Wish
from forebay.mods.kafka_consumer.telling import Teller
from forebay.mods.kafka_consumer.validation import configuration_of
from kafka_fixtures import running_cluster
from mod_place import ModPlace

CREDENTIALS = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "KAFKA_SASL_MECHANISM": "PLAIN",
    "KAFKA_SASL_PLAIN_USERNAME": "alice",
    "KAFKA_SASL_PLAIN_PASSWORD": "alice-secret",
}


@pytest.fixture
def guarded():
    overrides = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    listener = Listener("SASL_PLAINTEXT", plain({"alice": "alice-secret"}))
    yield from running_cluster(TrialCluster(listener=listener, overrides=overrides))


@pytest.mark.parametrize("params", [{}, {"dev_mode": True}, {"auto_offset_reset": "latest"}])
def test_reading_and_committing_are_all_it_may_and_all_it_needs(guarded, tmp_path, params):
    broker = connect(f"kafka://{guarded.internal}")
    mod = ModPlace(tmp_path, broker)
    mod.create()
    mod.produce([b"%d" % number for number in range(5)])
    _allow_reading(guarded.internal, mod.topic, mod.group)
    given = {
        "bootstrap_servers": guarded.bootstrap,
        "topics": [mod.topic],
        "group_id": mod.group,
        "processor_callable": int,
        "auto_offset_reset": "earliest",
        "stop_at_offset": {(mod.topic, 0): 5},
        "backup_path": str(mod.backup),
        "dlq_path": str(mod.letters_file),
    }
    events = []
    tell = Teller(lambda event, **fields: events.append((event, fields)), "warning", "m")
    wish = Wish(threading.Event())
    threading.Timer(30, wish.stop.set).start()
    ended = run_consumer(configuration_of(given | params, CREDENTIALS), tell, wish)
    unread = params.get("auto_offset_reset") == "latest"
    assert (ended.exit_code, ended.metrics["processed"]) == (0, 0 if unread else 5), events
    assert wish.reason is None
    mod.close()


def _allow_reading(servers, topic, group):
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    wanted = ((ResourceType.TOPIC, topic), (ResourceType.GROUP, group))
    bindings = [
        AclBinding(
            kind, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for kind, name in wanted
    ]  # fmt: skip
    for future in client.create_acls(bindings).values():
        future.result(10)
