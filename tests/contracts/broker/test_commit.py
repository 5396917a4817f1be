from dataclasses import replace

import pytest

from contracts.broker.adapters import case
from contracts.broker.stories import (
    QUICK,
    Member,
    new_topic,
    numbered,
    produce,
    take_turns,
    values,
)
from forebay.core.errors import CommitFailed, Fenced, NoCommittedOffset
from forebay.core.records import CommittedOffset, TopicPartition


@case(50)
def test_nothing_is_committed_unless_asked(broker, group):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    produce(broker, numbered(topic, 4))
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.records) == 4)
    take_turns(reader, until=lambda: reader.consumer.at_end(partition))
    assert reader.consumer.committed([partition]) == {partition: None}
    reader.consumer.close()
    again = Member(broker, group, [topic])
    take_turns(again, until=lambda: len(again.records) >= 4)
    assert again.started_at == {partition: None}
    assert values(again.records) == [b"0", b"1", b"2", b"3"]
    again.consumer.close()
    unsure = Member(broker, group, [topic], start=None)
    with pytest.raises(NoCommittedOffset, match=topic):
        take_turns(unsure, until=lambda: unsure.records)


@case(51)
def test_a_note_in_a_commit_comes_back_as_it_was(broker, admin, group):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    produce(broker, numbered(topic, 2))
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.records) == 2)
    noted = CommittedOffset(reader.records[0].offset + 1, 'résolu: {"above": 3}')
    reader.consumer.commit({partition: noted})
    assert reader.consumer.committed([partition]) == {partition: noted}
    assert [p.committed for p in admin.describe_group(group).positions] == [noted]

    plain = CommittedOffset(reader.records[1].offset + 1)
    reader.consumer.start_commit({partition: plain})
    results = []
    take_turns(reader, until=lambda: results.extend(reader.consumer.finished_commits()) or results)
    assert [(result.offsets, result.failures) for result in results] == [({partition: plain}, {})]
    reader.consumer.close()
    heir = Member(broker, group, [topic])
    take_turns(heir, until=lambda: heir.owns)
    assert heir.started_at == {partition: plain}


@case(52)
def test_a_commit_from_an_old_generation_is_refused_as_fenced_and_has_no_effect(broker, group):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    produce(broker, numbered(topic, 5))
    hasty = replace(QUICK, session_timeout_seconds=1.5, poll_interval_max_seconds=2.0)
    old = Member(broker, group, [topic], settings=hasty)
    take_turns(old, until=lambda: len(old.records) == 5)
    new = Member(broker, group, [topic])
    take_turns(new, until=lambda: len(new.records) == 5)
    owned = CommittedOffset(new.records[1].offset, "of the owner")
    new.consumer.commit({partition: owned})
    with pytest.raises(CommitFailed) as failed:
        old.commit_all()
    assert {p: type(error) for p, error in failed.value.failures.items()} == {partition: Fenced}
    old.consumer.start_commit({partition: CommittedOffset(old.records[-1].offset + 1)})
    results = []
    take_turns(old, new, until=lambda: results.extend(old.consumer.finished_commits()) or results)
    assert [type(error) for error in results[0].failures.values()] == [Fenced]
    assert new.consumer.committed([partition]) == {partition: owned}
