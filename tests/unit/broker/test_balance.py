from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from forebay.broker.balance import balance
from forebay.core.records import TopicPartition

TOPICS = ("orders", "receipts", "refunds")
MEMBERS = ("ann", "ben", "cid", "dot", "eve")

partition_sets = st.sets(
    st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 7)), max_size=24
)
subscription_maps = st.dictionaries(
    st.sampled_from(MEMBERS), st.sets(st.sampled_from(TOPICS)), max_size=5
)
owner_maps = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 9)),
    st.sampled_from((*MEMBERS, "gone")),
)
member_sets = st.sets(st.sampled_from(MEMBERS), min_size=1)


def all_subscribe(members):
    return {member: set(TOPICS) for member in members}


@given(partition_sets, subscription_maps, owner_maps)
def test_every_partition_that_somebody_reads_is_given_to_one_who_reads_it(
    partitions, subscriptions, owners
):
    target = balance(partitions, subscriptions, owners)
    wanted = set().union(*subscriptions.values())
    assert target.keys() == {partition for partition in partitions if partition.topic in wanted}
    assert all(partition.topic in subscriptions[member] for partition, member in target.items())


@given(partition_sets, member_sets, owner_maps)
def test_loads_of_members_with_the_same_topics_differ_by_at_most_one(partitions, members, owners):
    loads = Counter(balance(partitions, all_subscribe(members), owners).values())
    counts = [loads[member] for member in members]
    assert max(counts) - min(counts) <= 1


@given(partition_sets, subscription_maps, owner_maps)
def test_no_partition_has_an_eligible_member_two_lighter_than_its_own(
    partitions, subscriptions, owners
):
    target = balance(partitions, subscriptions, owners)
    loads = Counter(target.values())
    for partition, member in target.items():
        eligible = [m for m, topics in subscriptions.items() if partition.topic in topics]
        assert loads[member] - min(loads[other] for other in eligible) <= 1


@given(partition_sets, subscription_maps, owner_maps)
def test_what_is_balanced_is_not_moved_again(partitions, subscriptions, owners):
    target = balance(partitions, subscriptions, owners)
    assert balance(partitions, subscriptions, target) == target


@given(partition_sets, member_sets)
def test_when_one_leaves_only_its_partitions_move(partitions, members):
    before = balance(partitions, all_subscribe(members), {})
    leaver = min(members)
    after = balance(partitions, all_subscribe(members - {leaver}), before)
    kept = {partition: member for partition, member in before.items() if member != leaver}
    assert after.items() >= kept.items() or members == {leaver}


@given(partition_sets, member_sets)
def test_when_one_joins_only_its_fair_share_moves(partitions, members):
    before = balance(partitions, all_subscribe(members), {})
    after = balance(partitions, all_subscribe({*members, "new"}), before)
    moved = {partition for partition, member in after.items() if before[partition] != member}
    assert {after[partition] for partition in moved} <= {"new"}
    assert len(moved) <= len(partitions) // (len(members) + 1)


@given(partition_sets, subscription_maps, owner_maps, st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_changes_nothing(partitions, subscriptions, owners, random):
    shuffled = sorted(partitions)
    random.shuffle(shuffled)
    backwards = dict(reversed(subscriptions.items()))
    assert balance(shuffled, backwards, owners) == balance(partitions, subscriptions, owners)
