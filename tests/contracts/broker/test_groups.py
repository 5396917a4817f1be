import pytest

from contracts.broker.adapters import case
from contracts.broker.stories import (
    Member,
    new_topic,
    numbered,
    own_all,
    partitions_of,
    produce,
    shares,
    take_turns,
    unique,
    values,
)
from forebay.core.errors import GroupActive
from forebay.core.records import CommittedOffset, TopicPartition


def spread(topic, count, partitions):
    return [
        record._replace(partition=number % partitions)
        for number, record in enumerate(numbered(topic, count))
    ]


@case(35)
def test_a_member_alone_gets_every_partition(broker, group):
    topic = new_topic(broker, partitions=4)
    produce(broker, spread(topic, 20, 4))
    alone = Member(broker, group, [topic])
    take_turns(alone, until=lambda: len(alone.records) == 20)
    assert alone.owns == alone.all_told("assigned") == frozenset(partitions_of(topic, 4))
    assert sorted(values(alone.records)) == sorted(b"%d" % number for number in range(20))


@case(36)
def test_two_members_split_the_partitions_without_overlap_or_rest(broker, admin, group):
    topic = new_topic(broker, partitions=6)
    members = [Member(broker, group, [topic]) for _ in range(2)]
    take_turns(*members, until=lambda: shares(*members) == [3, 3])
    assert own_all(members, partitions_of(topic, 6))
    described = admin.describe_group(group)
    assert described.active
    assert sorted(len(member.partitions) for member in described.members) == [3, 3]
    produce(broker, spread(topic, 60, 6))
    take_turns(*members, until=lambda: sum(len(member.records) for member in members) >= 60)
    read = values(record for member in members for record in member.records)
    assert sorted(read) == sorted(b"%d" % number for number in range(60))


@case(37)
def test_a_member_too_many_is_idle_and_no_error(broker, group):
    topic = new_topic(broker, partitions=2)
    members = [Member(broker, group, [topic]) for _ in range(3)]
    take_turns(*members, until=lambda: shares(*members) == [0, 1, 1])
    produce(broker, spread(topic, 10, 2))
    take_turns(*members, until=lambda: sum(len(member.records) for member in members) == 10)
    assert own_all(members, partitions_of(topic, 2))


@case(38)
def test_a_member_that_leaves_hands_over_without_repeating_what_was_committed(broker, group):
    topic = new_topic(broker, partitions=2)
    members = leaving, staying = [Member(broker, group, [topic]) for _ in range(2)]
    take_turns(*members, until=lambda: shares(*members) == [1, 1])
    produce(broker, spread(topic, 20, 2))
    take_turns(*members, until=lambda: len(leaving.records) == len(staying.records) == 10)
    leaving.when_revoked = lambda _: leaving.commit_all()
    held = leaving.owns
    leaving.consumer.close()
    assert leaving.told[-1] == ("revoked", held)
    assert leaving.all_told("lost") == frozenset()
    take_turns(staying, until=lambda: len(staying.owns) == 2)
    produce(broker, spread(topic, 4, 2))
    take_turns(staying, until=lambda: len(staying.records) >= 14)
    assert len({(record.at, record.offset) for record in staying.records + leaving.records}) == 24
    assert len(staying.records) == 14


@case(42)
def test_until_revoked_returns_nobody_else_owns_the_partition_and_a_commit_counts(broker, group):
    topic = new_topic(broker, partitions=2)
    produce(broker, spread(topic, 10, 2))
    giving = Member(broker, group, [topic])
    take_turns(giving, until=lambda: len(giving.records) == 10)
    taking = Member(broker, group, [topic])

    def look_and_commit(partitions):
        for _ in range(10):
            taking.poll(0.02)
            assert not taking.owns & set(partitions)
        giving.commit_all()

    giving.when_revoked = look_and_commit
    take_turns(giving, taking, until=lambda: shares(giving, taking) == [1, 1])
    giving.when_revoked = lambda _: None
    (moved,) = taking.owns
    assert moved in giving.all_told("revoked")
    last = max(record.offset for record in giving.records if record.at == moved)
    assert taking.started_at[moved] == CommittedOffset(last + 1)
    assert taking.records == []


@case(44)
def test_two_groups_read_and_commit_without_noticing_each_other(broker):
    topic = new_topic(broker)
    produce(broker, numbered(topic, 5))
    one, other = (Member(broker, unique("group"), [topic]) for _ in range(2))
    take_turns(one, other, until=lambda: len(one.records) == len(other.records) == 5)
    one.commit_all()
    partition = TopicPartition(topic, 0)
    assert one.consumer.committed([partition])[partition].offset == one.records[-1].offset + 1
    assert other.consumer.committed([partition]) == {partition: None}


@case(45)
def test_partitions_that_are_added_are_picked_up_and_read(broker, admin, group):
    topic = new_topic(broker, partitions=1)
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.owns) == 1)
    admin.extend_topic(topic, 3)
    produce(broker, spread(topic, 9, 3))
    take_turns(reader, until=lambda: len(reader.records) >= 9)
    assert reader.owns == frozenset(partitions_of(topic, 3))
    assert sorted(values(reader.records)) == [b"%d" % number for number in range(9)]
    assert reader.all_told("lost") == frozenset()


@case(46)
def test_a_restart_of_one_in_three_moves_no_more_than_its_partitions(broker, group):
    topic = new_topic(broker, partitions=6)
    *staying, leaving = (Member(broker, group, [topic]) for _ in range(3))
    take_turns(*staying, leaving, until=lambda: shares(*staying, leaving) == [2, 2, 2])
    kept = [member.owns for member in staying]
    for member in staying:
        member.told.clear()
    leaving.consumer.close()
    take_turns(*staying, until=lambda: shares(*staying) == [3, 3])
    assert all(member.owns > before for member, before in zip(staying, kept, strict=True))
    returned = Member(broker, group, [topic])
    take_turns(*staying, returned, until=lambda: shares(*staying, returned) == [2, 2, 2])
    moved = [partition for member in staying for partition in member.all_told("revoked")]
    assert len(moved) <= 2
    assert own_all([*staying, returned], partitions_of(topic, 6))


@case(48)
def test_a_group_without_members_keeps_its_offsets(broker, admin, group):
    topic = new_topic(broker)
    produce(broker, numbered(topic, 4))
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.records) == 4)
    reader.commit_all()
    reader.consumer.close()
    described = admin.describe_group(group)
    assert (described.active, described.members) == (False, ())
    next_offset = reader.records[-1].offset + 1
    assert [position.committed.offset for position in described.positions] == [next_offset]
    assert (group, False) in [(each.name, each.active) for each in admin.list_groups()]
    assert broker.consumer(group).committed([TopicPartition(topic, 0)]) == {
        TopicPartition(topic, 0): CommittedOffset(next_offset)
    }


@case(49)
def test_offsets_are_reset_only_while_nobody_is_in_the_group(broker, admin, group):
    topic = new_topic(broker)
    partition = TopicPartition(topic, 0)
    offsets = [report.offset for report in produce(broker, numbered(topic, 6))]
    reader = Member(broker, group, [topic])
    take_turns(reader, until=lambda: len(reader.records) == 6)
    reader.commit_all()
    with pytest.raises(GroupActive, match=group):
        admin.reset_offsets(group, {partition: offsets[2]})
    assert reader.consumer.committed([partition])[partition].offset == offsets[5] + 1
    reader.consumer.close()
    admin.reset_offsets(group, {partition: offsets[2]})
    admin.reset_offsets(group, {partition: offsets[2]})
    again = Member(broker, group, [topic])
    take_turns(again, until=lambda: len(again.records) >= 4)
    assert values(again.records) == [b"2", b"3", b"4", b"5"]
