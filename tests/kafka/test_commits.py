import pytest

from contracts.broker.stories import new_topic, unique
from forebay.broker.kafka.commits import METADATA_CHARACTERS_MAX
from forebay.core.errors import CommitFailed, Fenced, InvalidRequest
from forebay.core.records import CommittedOffset, TopicPartition
from kafka.members import Member


@pytest.fixture
def member(kafka_broker):
    topic = new_topic(kafka_broker, 2)
    member = Member(kafka_broker, unique("group")).join(topic)
    member.until(lambda: member.owns(2))
    yield member
    member.consumer.close()


def test_a_partition_that_is_not_ours_fails_and_the_others_are_committed(member):
    ours = sorted(member.consumer.assignment)
    foreign = TopicPartition(ours[0].topic, 7)
    offsets = dict.fromkeys([*ours, foreign], CommittedOffset(3))
    with pytest.raises(CommitFailed) as failed:
        member.consumer.commit(offsets)
    assert {at: type(error) for at, error in failed.value.failures.items()} == {foreign: Fenced}
    assert set(member.consumer.committed(ours).values()) == {CommittedOffset(3)}


def test_a_commit_that_was_started_is_reported_per_partition(member):
    ours = sorted(member.consumer.assignment)
    foreign = TopicPartition(ours[0].topic, 7)
    member.consumer.start_commit(dict.fromkeys([*ours, foreign], CommittedOffset(4, "note")))
    results = []

    def finished():
        results.extend(member.consumer.finished_commits())
        return len(results) == 2

    member.until(finished)
    refused, done = results
    assert {at: type(error) for at, error in refused.failures.items()} == {foreign: Fenced}
    assert done.failures == {}
    assert done.offsets == dict.fromkeys(ours, CommittedOffset(4, "note"))


@pytest.mark.parametrize("character", ["a", "ä", "\N{SNOWMAN}"])
def test_metadata_passes_up_to_the_limit_in_characters_and_one_more_is_refused(member, character):
    at, other = sorted(member.consumer.assignment)
    longest = character * METADATA_CHARACTERS_MAX
    member.consumer.commit({at: CommittedOffset(1, longest)})
    assert member.consumer.committed([at]) == {at: CommittedOffset(1, longest)}
    with pytest.raises(CommitFailed) as failed:
        member.consumer.commit(
            {at: CommittedOffset(2, longest + character), other: CommittedOffset(2)}
        )
    assert isinstance(failed.value.failures[at], InvalidRequest)
    assert member.consumer.committed([at, other]) == {
        at: CommittedOffset(1, longest),
        other: CommittedOffset(2),
    }


def test_a_stranger_to_an_active_group_is_fenced_by_the_broker_itself(member, kafka_broker):
    (at, _) = sorted(member.consumer.assignment)
    stranger = kafka_broker.consumer(member.consumer._group)
    stranger.assign({at: 0})
    with pytest.raises(CommitFailed) as failed:
        stranger.commit({at: CommittedOffset(9)})
    assert isinstance(failed.value.failures[at], Fenced)
    assert member.consumer.committed([at]) == {at: None}
    stranger.close()
