"""A suite that catches nothing proves nothing: each fault here must fail the case that names it."""

import inspect
import time

import pytest

from contracts.broker import (
    stories,
    test_commit,
    test_fetch,
    test_groups,
    test_produce,
    test_takeover,
    test_topics,
)
from contracts.broker.adapters import memory_adapter
from forebay.core.errors import ForebayError
from forebay.core.records import CommittedOffset
from forebay.testing.memory_admin import MemoryAdmin
from forebay.testing.memory_assignment import MemoryAssignment
from forebay.testing.memory_consumer import MemoryConsumer
from forebay.testing.memory_groups import MemoryGroup
from forebay.testing.memory_log import MemoryLog
from forebay.testing.memory_producer import MemoryProducer

NOTICED = (AssertionError, ForebayError, pytest.fail.Exception)


def no_generation_check(patch):
    def commit(group, member_id, offsets):
        group.committed.update(offsets)
        return {}

    patch(MemoryGroup, "commit", commit)


def commit_implied_by_fetch(patch):
    true_poll = MemoryConsumer.poll

    def poll(consumer, *limits, **more_limits):
        records = true_poll(consumer, *limits, **more_limits)
        for record in records if consumer._group_name else ():
            consumer.commit({record.at: CommittedOffset(record.offset + 1)})
        return records

    patch(MemoryConsumer, "poll", poll)


def commit_names_the_last_record_read(patch):
    true_claim = MemoryGroup.claim

    def claim(group, member_id):
        claimed = true_claim(group, member_id)
        return {p: c and CommittedOffset(c.offset - 1, c.metadata) for p, c in claimed.items()}

    patch(MemoryGroup, "claim", claim)


def metadata_dropped(patch):
    true_commit = MemoryGroup.commit

    def commit(group, member_id, offsets):
        bare = {partition: CommittedOffset(known.offset) for partition, known in offsets.items()}
        return true_commit(group, member_id, bare)

    patch(MemoryGroup, "commit", commit)


def claimed_before_released(patch):
    def claim(group, member_id):
        mine = [p for p, target in group._targets.items() if target == member_id]
        new = [p for p in mine if group.owners.get(p) != member_id]
        group.owners.update(dict.fromkeys(new, member_id))
        return {partition: group.committed.get(partition) for partition in new}

    patch(MemoryGroup, "claim", claim)


def lost_told_as_revoked(patch):
    true_lose = MemoryConsumer._lose

    class Mistaken:
        def __init__(self, listener):
            self.lost = listener.revoked

    patch(MemoryConsumer, "_lose", lambda me, listener: true_lose(me, Mistaken(listener)))


def hung_member_never_expelled(patch):
    patch(MemoryGroup, "expire", lambda group, now: None)


def balance_that_is_not_sticky(patch):
    def plan(group, partitions):
        members = sorted(group.members, reverse=True)
        group._targets = {p: members[n % len(members)] for n, p in enumerate(sorted(partitions))}

    patch(MemoryGroup, "plan", plan)


def lost_wake_up(patch):
    true_check = MemoryAssignment.raise_what_stops

    def look_four_times_a_second(assignment):
        true_check(assignment)
        time.sleep(0.25)

    patch(MemoryAssignment, "raise_what_stops", look_four_times_a_second)


def pause_ignored(patch):
    patch(MemoryConsumer, "pause", lambda consumer, partitions: None)


def byte_limit_ignored(patch):
    true_read = MemoryAssignment.read

    def read(assignment, max_records, max_bytes):
        return true_read(assignment, max_records, 10**9)

    patch(MemoryAssignment, "read", read)


def reset_by_policy_when_out_of_range(patch):
    def jump(assignment):
        for partition, reader in assignment._readers.items():
            low, end = assignment._store.log(partition).watermarks
            reader.next_offset = min(max(low, reader.next_offset), end)

    patch(MemoryAssignment, "raise_what_stops", jump)


def error_repeated_at_every_poll(patch):
    true_check = MemoryAssignment.raise_what_stops

    def check(assignment):
        for reader in assignment._readers.values():
            reader.stopped = False
        true_check(assignment)

    patch(MemoryAssignment, "raise_what_stops", check)


def close_drops_the_buffer(patch):
    true_shut = MemoryProducer.shut
    patch(MemoryProducer, "shut", lambda producer: true_shut(producer)[:-1])


def acknowledged_but_not_stored(patch):
    true_append = MemoryLog.append

    def append(log, record):
        stored = true_append(log, record)
        if stored.offset % 10 == 9:
            log._records[-1] = stored._replace(value=b"something else")
        return stored

    patch(MemoryLog, "append", append)


def empty_becomes_nothing(patch):
    true_place = MemoryProducer._place
    patch(
        MemoryProducer,
        "_place",
        lambda producer, record: true_place(producer, record._replace(value=record.value or None)),
    )


def keys_by_another_hash(patch):
    patch(MemoryProducer, "_choose", lambda producer, record: hash(record.key) % 12)


def active_group_reset(patch):
    def reset(admin, group, offsets):
        committed = {partition: CommittedOffset(offset) for partition, offset in offsets.items()}
        admin._store.group(group).committed.update(committed)

    patch(MemoryAdmin, "reset_offsets", reset)


def old_commits_kept_for_a_new_topic(patch):
    patch(MemoryGroup, "forget", lambda group, topic: None)


CAUGHT_BY_CASE = {
    no_generation_check: 52,
    commit_implied_by_fetch: 50,
    commit_names_the_last_record_read: 25,
    metadata_dropped: 51,
    claimed_before_released: 42,
    lost_told_as_revoked: 41,
    hung_member_never_expelled: 41,
    balance_that_is_not_sticky: 46,
    lost_wake_up: 31,
    pause_ignored: 30,
    byte_limit_ignored: 32,
    reset_by_policy_when_out_of_range: 26,
    error_repeated_at_every_poll: 27,
    close_drops_the_buffer: 22,
    acknowledged_but_not_stored: 19,
    empty_becomes_nothing: 13,
    keys_by_another_hash: 9,
    active_group_reset: 49,
    old_commits_kept_for_a_new_topic: 5,
}
MODULES = (test_topics, test_produce, test_fetch, test_groups, test_takeover, test_commit)


def function_of_case(number):
    functions = [function for module in MODULES for function in vars(module).values()]
    (wanted,) = [each for each in functions if getattr(each, "case_number", None) == number]
    return wanted


@pytest.mark.parametrize(
    ("fault", "number"),
    CAUGHT_BY_CASE.items(),
    ids=[f"{fault.__name__}-c{number:02d}" for fault, number in CAUGHT_BY_CASE.items()],
)
def test_a_planted_fault_is_caught_by_the_case_that_names_it(fault, number, monkeypatch):
    monkeypatch.setattr(stories, "PATIENCE_SECONDS", 3.0)
    fault(monkeypatch.setattr)
    adapter = memory_adapter()
    offered = {
        "adapter": adapter,
        "broker": adapter.broker,
        "admin": adapter.broker.admin(),
        "group": stories.unique("group"),
    }
    case = function_of_case(number)
    wanted = {name: offered[name] for name in inspect.signature(case).parameters}
    with pytest.raises(NOTICED):
        case(**wanted)
