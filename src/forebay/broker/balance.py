"""Who reads what: even, and moving as little as possible."""

from collections.abc import Collection, Mapping

from forebay.core.records import TopicPartition


def balance(
    partitions: Collection[TopicPartition],
    subscriptions: Mapping[str, Collection[str]],
    owners: Mapping[TopicPartition, str],
) -> dict[TopicPartition, str]:
    """Give each partition to a member that subscribes to its topic.

    A partition stays with its owner unless evenness asks for a move. Loads of members with the
    same topics differ by at most one.
    """
    eligible = {
        topic: sorted(m for m, topics in subscriptions.items() if topic in topics)
        for topic in {partition.topic for partition in partitions}
    }
    load = dict.fromkeys(subscriptions, 0)
    target: dict[TopicPartition, str] = {}
    for partition in sorted(partitions):
        owner = owners.get(partition)
        if owner in eligible[partition.topic]:
            target[partition] = owner
            load[owner] += 1
    for partition in sorted(set(partitions) - target.keys()):
        if members := eligible[partition.topic]:
            lightest = min(members, key=lambda member: load[member])
            target[partition] = lightest
            load[lightest] += 1
    _even_out(target, eligible, load)
    return target


def _even_out(
    target: dict[TopicPartition, str], eligible: Mapping[str, list[str]], load: dict[str, int]
) -> None:
    """Move one partition at a time from a heavier member to one at least two lighter.

    Every move lowers the sum of squared loads, so this ends.
    """
    moved = True
    while moved:
        moved = False
        for partition, owner in sorted(target.items(), reverse=True):
            lightest = min(eligible[partition.topic], key=lambda member: load[member])
            if load[owner] - load[lightest] >= 2:
                target[partition] = lightest
                load[owner] -= 1
                load[lightest] += 1
                moved = True
