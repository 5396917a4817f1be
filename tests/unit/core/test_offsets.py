import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.offsets import PartitionProgress

GAPS = st.lists(st.integers(0, 10**6), min_size=1, max_size=40)


def oracle(offsets, resolved, start):
    """The lowest delivered that is open, else one past the last delivered."""
    waiting = [offset for offset in offsets if offset not in resolved]
    return min(waiting) if waiting else max([start - 1, *offsets]) + 1


@given(start=st.integers(0, 10**9), gaps=GAPS, seed=st.integers(0, 10**6))
def test_the_watermark_is_that_of_the_oracle_in_any_order(start, gaps, seed):
    chance = random.Random(seed)
    progress: PartitionProgress[int] = PartitionProgress(start)
    delivered, resolved, last = [], set(), start
    todo, at = list(gaps), start
    while todo or resolved != set(delivered):
        waiting = [offset for offset in delivered if offset not in resolved]
        if todo and (not waiting or chance.random() < 0.5):
            at += todo.pop()
            assert progress.deliver(at, at)
            delivered.append(at)
            at += 1
        else:
            offset = chance.choice(waiting)
            assert progress.resolve(offset)
            resolved.add(offset)
        assert progress.watermark == oracle(delivered, resolved, start) >= last
        assert progress.unresolved == len(delivered) - len(resolved)
        assert progress.resolved_above == len([o for o in resolved if o > progress.watermark])
        assert progress.span == progress.position - progress.watermark
        last = progress.watermark
    assert (progress.watermark, progress.entries, progress.head) == (delivered[-1] + 1, 0, None)


def test_resolving_again_or_what_was_never_delivered_changes_nothing():
    progress: PartitionProgress[str] = PartitionProgress(5)
    progress.deliver(7, "a")
    progress.deliver(9, "b")
    assert progress.resolve(9)
    assert [progress.resolve(offset) for offset in (9, 8, 5, -1, 100)] == [False] * 5
    assert (progress.watermark, progress.resolved_late, progress.head) == (7, 5, "a")


@pytest.mark.parametrize("again", [5, 7, 8])
def test_what_was_delivered_or_passed_is_not_delivered_again(again):
    progress: PartitionProgress[str] = PartitionProgress(5)
    progress.deliver(8, "a")
    progress.resolve(8)
    assert not progress.deliver(again, "b")
    assert (progress.watermark, progress.unresolved, progress.delivered_twice) == (9, 0, 1)


def test_one_stuck_record_holds_the_watermark_and_no_more_memory_than_the_span():
    progress: PartitionProgress[int] = PartitionProgress(0)
    progress.deliver(0, 0)
    for offset in range(1, 20_000):
        progress.deliver(offset, offset)
        progress.resolve(offset)
        assert progress.watermark == 0
    assert progress.entries == progress.span + 1 == 20_001
    progress.resolve(0)
    assert (progress.watermark, progress.entries) == (20_000, 0)


def test_memory_is_flat_while_the_head_moves():
    progress: PartitionProgress[int] = PartitionProgress(0)
    for offset in range(50_000):
        progress.deliver(offset, offset)
        if offset >= 10:
            progress.resolve(offset - 10)
        assert progress.entries <= 22


def test_what_lies_beyond_the_last_record_can_be_passed_over():
    progress: PartitionProgress[str] = PartitionProgress(0)
    progress.deliver(3, "a")
    progress.reach(9)
    assert (progress.watermark, progress.position) == (3, 9)
    progress.resolve(3)
    progress.reach(4)
    assert (progress.watermark, progress.span) == (9, 0)
