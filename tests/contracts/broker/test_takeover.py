"""Members that die, freeze or hang, and what the others see of it."""

import time
from dataclasses import replace

from contracts.broker.adapters import DURABLE, case
from contracts.broker.processes import Process
from contracts.broker.stories import (
    QUICK,
    Member,
    new_topic,
    numbered,
    produce,
    take_turns,
    values,
)
from forebay.core.records import CommittedOffset, TopicPartition

HASTY = replace(QUICK, session_timeout_seconds=1.5, poll_interval_max_seconds=2.0)


def joined(admin, group, members):
    return len(admin.describe_group(group).members) == members


@case(39, DURABLE)
def test_after_a_kill_another_takes_over_exactly_at_the_committed_offset(
    adapter, broker, admin, group
):
    topic = new_topic(broker)
    offsets = [report.offset for report in produce(broker, numbered(topic, 10))]
    with Process("consume", adapter.url, group, topic) as victim:
        victim.wait_for("read", 10)
        victim.ask(partition=0, commit=offsets[4])
        assert victim.wait_for("committed") == [offsets[4]]
        heir = Member(broker, group, [topic])
        take_turns(heir, until=lambda: joined(admin, group, 2))
        assert heir.owns == frozenset()
        victim.kill()
        killed_at = time.monotonic()
        take_turns(heir, until=lambda: heir.records)
        took_seconds = time.monotonic() - killed_at
    take_turns(heir, until=lambda: len(heir.records) >= 6)
    assert values(heir.records) == [b"4", b"5", b"6", b"7", b"8", b"9"]
    assert took_seconds <= adapter.bounds.takeover_after_kill_seconds


@case(40, DURABLE)
def test_a_member_that_was_frozen_past_its_session_cannot_commit_any_more(adapter, broker, group):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    offsets = [report.offset for report in produce(broker, numbered(topic, 5))]
    with Process("consume", adapter.url, group, topic) as frozen:
        frozen.wait_for("read", 5)
        frozen.freeze()
        heir = Member(broker, group, [topic])
        take_turns(heir, until=lambda: len(heir.records) == 5)
        heir.consumer.commit({partition: CommittedOffset(offsets[2])})
        frozen.thaw()
        frozen.ask(partition=0, commit=offsets[4] + 1)
        take_turns(heir, until=lambda: frozen.all_said("refused") + frozen.all_said("committed"))
        assert frozen.all_said("refused") == ["Fenced"]
        assert heir.consumer.committed([partition])[partition].offset == offsets[2]


@case(41)
def test_a_member_that_does_not_poll_in_time_loses_its_partition_and_is_told(broker, admin, group):
    topic = new_topic(broker)
    hung = Member(broker, group, [topic], settings=HASTY)
    take_turns(hung, until=lambda: hung.owns)
    heir = Member(broker, group, [topic])
    take_turns(hung, heir, until=lambda: joined(admin, group, 2))
    take_turns(heir, until=lambda: heir.owns)
    take_turns(hung, heir, until=lambda: hung.all_told("lost"))
    assert hung.all_told("lost") == {TopicPartition(topic, 0)}
    assert hung.all_told("revoked") == frozenset()
    produce(broker, numbered(topic, 3))
    take_turns(hung, heir, until=lambda: len(heir.records) >= 3)
    assert hung.records == []


@case(43, DURABLE)
def test_who_lost_its_partitions_is_told_lost_and_not_revoked(adapter, broker, group):
    topic = new_topic(broker)
    with Process("consume", adapter.url, group, topic) as frozen:
        frozen.wait_for("assigned")
        frozen.freeze()
        heir = Member(broker, group, [topic])
        take_turns(heir, until=lambda: heir.owns)
        frozen.thaw()
        take_turns(heir, until=lambda: frozen.all_said("lost"))
        assert frozen.all_said("lost") == [[topic, 0]]
        assert frozen.all_said("revoked") == []
