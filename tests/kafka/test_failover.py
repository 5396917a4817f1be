import time

import pytest

from contracts.broker.stories import read_from_start, unique, values
from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.trial import TrialCluster
from forebay.broker.settings import KafkaSettings, ProducerSettings
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.observability.catalogue import silent
from kafka_fixtures import running_cluster


@pytest.fixture(scope="module")
def three_nodes():
    yield from running_cluster(TrialCluster(3))


def test_a_leader_that_is_killed_takes_no_acknowledged_record_with_it(three_nodes):
    broker = KafkaBroker(KafkaSettings(three_nodes.bootstrap), silent)
    assert broker.describe().sentence.endswith("(3 nodes)")
    topic = unique("topic")
    admin = broker.admin()
    admin.create_topic(TopicSpec(topic, 6, replication=3))
    assert admin.describe_topics([topic])[0].replication == 3
    producer = broker.producer(ProducerSettings(delivery_timeout_seconds=60))
    reports = []
    started = time.monotonic()
    sent = 0
    while time.monotonic() - started < 6:
        producer.send(Record(b"%d" % sent, topic=topic, partition=sent % 6), sent)
        sent += 1
        reports += producer.poll(0.001)
        if sent == 300:
            three_nodes.nodes[1].kill()
    reports += producer.close(60)
    assert [report.error for report in reports if report.error] == []
    assert len(reports) == sent
    partitions = [TopicPartition(topic, number) for number in range(6)]
    found = sorted(int(value) for value in values(read_from_start(broker, partitions)))
    assert found == list(range(sent))
    three_nodes.nodes[1].start()
    broker.close()
