"""Who is let in, how, and what a refusal looks like."""

import base64
import json
import time
from dataclasses import replace

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from contracts.broker.stories import new_topic, numbered, partitions_of, unique, values
from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.listeners import Listener, plain, scram, unsigned_tokens
from forebay.broker.kafka.trial import TrialCluster
from forebay.broker.settings import KafkaSettings, Secret, Token
from forebay.core.errors import AccessDenied
from forebay.core.records import Record, TopicPartition
from forebay.testing.waiting import eventually
from kafka.members import Member
from kafka_fixtures import running_cluster

REAUTHENTICATE_MS = 2_000


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def __call__(self, event: str, **fields: object) -> None:
        self.events.append((event, fields))


@pytest.fixture(scope="module")
def guarded():
    mechanisms = {**plain({"alice": "alice-secret"}), **scram(), **unsigned_tokens()}
    cluster = TrialCluster(
        listener=Listener("SASL_PLAINTEXT", mechanisms, reauthenticate_ms=REAUTHENTICATE_MS),
        overrides={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "true",
        },
    )
    yield from running_cluster(cluster)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def connect(guarded, told):
    brokers = []

    def connect(**credentials):
        settings = KafkaSettings(guarded.bootstrap, "SASL_PLAINTEXT", **credentials)
        brokers.append(KafkaBroker(settings, told))
        return brokers[-1]

    yield connect
    for broker in brokers:
        broker.close()


@pytest.fixture
def alice(connect):
    return connect(sasl_mechanism="PLAIN", username="alice", password=Secret("alice-secret"))


def round_trip(broker):
    topic = new_topic(broker)
    producer = broker.producer()
    for record in numbered(topic, 3):
        producer.send(record)
    assert [report.error for report in producer.close()] == [None] * 3
    member = Member(broker, unique("group")).join(topic)
    member.until(lambda: len(member.records) == 3)
    member.consumer.close()
    return values(member.records)


def unsigned_token(expires_at: float) -> Secret:
    def part(content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    claims = {"sub": "alice", "exp": int(expires_at)}
    return Secret(f"{part({'alg': 'none'})}.{part(claims)}.")


def test_a_user_with_a_password_is_let_in(alice, told):
    assert round_trip(alice) == [b"0", b"1", b"2"]
    assert [event for event, _ in told.events if event.startswith("broker.")] == [
        "broker.connected"
    ]


def test_a_user_with_a_salted_password_is_let_in(guarded, connect):
    client = AdminClient({"bootstrap.servers": guarded.internal})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("bob", credential, b"bob-secret")
    client.alter_user_scram_credentials([change])["bob"].result(10)
    bob = connect(sasl_mechanism="SCRAM-SHA-512", username="bob", password=Secret("bob-secret"))
    assert eventually(lambda: round_trip(bob)) == [b"0", b"1", b"2"]


def test_a_wrong_password_is_access_denied_wherever_it_is_met(alice, connect, told):
    topic = new_topic(alice)
    mallory = connect(sasl_mechanism="PLAIN", username="alice", password=Secret("guess"))
    with pytest.raises(AccessDenied, match="sasl_mechanism"):
        mallory.admin().describe_topics()
    with pytest.raises(AccessDenied):
        mallory.producer().send(Record(b"x", topic=topic))
    with pytest.raises(AccessDenied):
        mallory.consumer(None).assign({TopicPartition(topic, 0): 0})
    (finding, _) = mallory.diagnose()
    assert not finding.ok
    assert "broker.refused" in {event for event, _ in told.events}
    assert "guess" not in str(told.events)


def test_a_member_that_is_not_let_in_is_told_so_by_poll(connect):
    mallory = connect(sasl_mechanism="PLAIN", username="alice", password=Secret("guess"))
    member = Member(mallory, unique("group")).join("anything")
    member.until(lambda: member.errors)
    assert isinstance(member.errors[0], AccessDenied)


def test_tokens_are_asked_for_again_before_they_expire_and_nothing_is_lost(connect):
    asked = []

    def token() -> Token:
        asked.append(time.time())
        return Token(unsigned_token(time.time() + 4), time.time() + 4, "alice")

    broker = connect(sasl_mechanism="OAUTHBEARER", token=token)
    topic = new_topic(broker)
    producer = broker.producer()
    asked_by_now = len(asked)
    reports = []
    sent = 0
    while len(asked) < asked_by_now + 2:
        producer.send(Record(b"%d" % sent, topic=topic), sent)
        sent += 1
        reports += producer.poll(0.02)
    reports += producer.close()
    assert [report.error for report in reports] == [None] * sent


def test_an_expired_token_is_access_denied(connect):
    def token() -> Token:
        return Token(unsigned_token(time.time() - 60), time.time() + 3600, "alice")

    broker = connect(sasl_mechanism="OAUTHBEARER", token=token)
    with pytest.raises(AccessDenied):
        broker.admin().describe_topics()


def test_a_topic_and_a_group_that_are_not_granted_are_named_in_the_refusal(guarded, alice):
    topic, group = new_topic(alice), unique("group")
    _deny(guarded, ResourceType.TOPIC, topic, AclOperation.WRITE)
    _deny(guarded, ResourceType.GROUP, group, AclOperation.READ)
    producer = alice.producer()

    def refusal():
        producer.send(Record(b"x", topic=topic))
        reports = producer.poll(5)
        return reports and reports[0].error

    error = eventually(refusal)
    assert isinstance(error, AccessDenied)
    assert topic in str(error)
    producer.close()
    member = Member(alice, group).join(topic)
    member.until(lambda: member.errors)
    assert isinstance(member.errors[0], AccessDenied)
    assert "Grant Read on the group" in str(member.errors[0])
    member.consumer.close()
    by_hand = alice.consumer(group)
    by_hand.assign(dict.fromkeys(partitions_of(topic, 1), 0))
    for _ in range(5):
        assert by_hand.poll(0.1) == []
    by_hand.close()


def test_a_broker_that_takes_no_new_topics_is_not_asked_for_one(guarded, told):
    settings = replace(KafkaSettings(guarded.internal), may_create_topics=False)
    broker = KafkaBroker(settings, told)
    with pytest.raises(Exception, match="may_create_topics"):
        new_topic(broker)
    broker.close()


def _deny(cluster, kind, name, operation):
    client = AdminClient({"bootstrap.servers": cluster.internal})
    denial = AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:alice", "*", operation,
        AclPermissionType.DENY,
    )  # fmt: skip
    allowed = AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:*", "*", AclOperation.ALL,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    for future in client.create_acls([denial, allowed]).values():
        future.result(10)
