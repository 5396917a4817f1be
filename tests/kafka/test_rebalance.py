from dataclasses import replace

import pytest

from contracts.broker.stories import (
    PATIENCE_SECONDS,
    QUICK,
    new_topic,
    numbered,
    partitions_of,
    produce,
    unique,
)
from forebay.broker.kafka.consumer import KafkaConsumer
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import (
    CommitFailed,
    Fenced,
    NoCommittedOffset,
    Unavailable,
)
from forebay.core.records import CommittedOffset, TopicPartition
from forebay.testing.waiting import eventually
from kafka.members import Member

IMPATIENT = ConsumerSettings(
    session_timeout_seconds=1, heartbeat_seconds=0.1, poll_interval_max_seconds=1
)


def test_a_partition_that_comes_back_delivers_although_it_was_paused_when_it_left(kafka_broker):
    topic = new_topic(kafka_broker, 2)
    group = unique("group")
    stays = Member(kafka_broker, group).join(topic)
    stays.until(lambda: stays.owns(2))
    stays.consumer.pause(partitions_of(topic, 2))
    guest = Member(kafka_broker, group).join(topic)
    stays.until(lambda: stays.owns(1) and guest.owns(1), guest)
    (gone,) = guest.consumer.assignment
    guest.consumer.close()
    stays.until(lambda: stays.owns(2))
    produce(kafka_broker, numbered(topic, 5, 0) + numbered(topic, 5, 1))
    stays.until(lambda: len(stays.records) == 5)
    assert {record.partition for record in stays.records} == {gone.partition}
    stays.consumer.close()


def test_partitions_lost_by_not_polling_are_told_as_lost_and_never_as_revoked(kafka_broker):
    topic = new_topic(kafka_broker)
    group = unique("group")
    member = Member(kafka_broker, group, IMPATIENT).join(topic)
    member.until(lambda: member.owns(1))
    admin = kafka_broker.admin()
    eventually(lambda: not admin.describe_group(group).active, within_seconds=PATIENCE_SECONDS)
    member.until(lambda: member.lost_calls)
    assert member.lost_calls == [[TopicPartition(topic, 0)]]
    assert member.revoked_calls == []
    member.until(lambda: len(member.assigned_calls) == 2)
    member.consumer.close()


def test_what_a_member_lost_it_can_no_longer_commit(kafka_broker):
    topic = new_topic(kafka_broker)
    group = unique("group")
    sleeper = Member(kafka_broker, group, IMPATIENT).join(topic)
    sleeper.until(lambda: sleeper.owns(1))
    heir = Member(kafka_broker, group).join(topic)
    heir.until(lambda: heir.owns(1))
    partition = TopicPartition(topic, 0)
    with pytest.raises(CommitFailed) as failed:
        sleeper.consumer.commit({partition: CommittedOffset(7)})
    assert isinstance(failed.value.failures[partition], Fenced)
    assert heir.consumer.committed([partition]) == {partition: None}
    heir.consumer.close()
    sleeper.consumer.close()


def test_what_a_listener_raises_comes_out_of_poll_and_the_partitions_are_read_all_the_same(
    kafka_broker,
):
    topic = new_topic(kafka_broker)
    produce(kafka_broker, numbered(topic, 3))

    def start(_at: TopicPartition) -> int:
        member.start = lambda _: None
        member.consumer.seek(TopicPartition(topic, 0), 0)
        raise Unavailable("the owner's store is away")

    member = Member(kafka_broker, unique("group"), start=start).join(topic)
    member.until(lambda: len(member.records) == 3)
    assert [str(error) for error in member.errors] == ["the owner's store is away"]
    member.consumer.close()


def test_a_partition_without_a_start_is_told_of_and_does_not_stop_the_others(kafka_broker):
    topic = new_topic(kafka_broker, 2)
    produce(kafka_broker, numbered(topic, 3, 0) + numbered(topic, 3, 1))
    member = Member(
        kafka_broker, unique("group"), start=lambda at: 0 if at.partition == 1 else None
    ).join(topic)
    member.until(lambda: len(member.records) == 3 and member.errors)
    assert [type(error) for error in member.errors] == [NoCommittedOffset]
    assert {record.partition for record in member.records} == {1}
    member.consumer.seek(TopicPartition(topic, 0), 1)
    member.until(lambda: len(member.records) == 5)
    member.consumer.close()


class AwayAtFirst:
    """Real questions whose commits cannot be looked up for the first few times."""

    def __init__(self, questions, times: int) -> None:
        self._questions = questions
        self._times = times

    def committed(self, *arguments, **named):
        if self._times:
            self._times -= 1
            raise Unavailable("the coordinator is away")
        return self._questions.committed(*arguments, **named)

    def __getattr__(self, name):
        return getattr(self._questions, name)


def test_a_partition_whose_commit_could_not_be_looked_up_is_not_silent_for_ever(kafka_broker):
    topic = new_topic(kafka_broker)
    produce(kafka_broker, numbered(topic, 3))
    cluster = kafka_broker._cluster
    away = replace(cluster, questions=AwayAtFirst(cluster.questions, 3))
    member = Member(kafka_broker, unique("group"))
    member.consumer = KafkaConsumer(away, unique("group"), QUICK)
    member.join(topic)
    member.until(lambda: len(member.records) == 3)
    assert [str(error) for error in member.errors] == ["the coordinator is away"] * 3
    member.consumer.close()


def test_the_newer_group_protocol_splits_hands_over_and_commits(kafka_broker):
    topic = new_topic(kafka_broker, 4)
    produce(kafka_broker, [record for n in range(4) for record in numbered(topic, 5, n)])
    group = unique("group")
    newer = replace(QUICK, group_protocol="consumer")
    first = Member(kafka_broker, group, newer).join(topic)
    first.until(lambda: len(first.records) == 20)
    first.consumer.commit({at: CommittedOffset(5) for at in first.consumer.assignment})
    second = Member(kafka_broker, group, newer).join(topic)
    first.until(lambda: first.owns(2) and second.owns(2), second)
    assert all(found == CommittedOffset(5) for found in second.assigned_calls[-1].values())
    first.consumer.close()
    second.until(lambda: second.owns(4))
    assert second.records == []
    second.consumer.close()
