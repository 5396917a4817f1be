"""What lies in front of a group, and whether it has read all there is."""

import pytest

from forebay.core.commit_notes import CommitNote
from forebay.core.errors import UnknownTopic
from forebay.core.lag_gate import LagGate
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.idle import committed_of, is_drained
from forebay.engine.lag import unresolved_on
from forebay.testing import FakeClock, MemoryBroker

GROUP = "shop-charge"
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def broker():
    broker = MemoryBroker(FakeClock())
    broker.admin().create_topic(TopicSpec("orders", 2))
    broker.admin().create_topic(TopicSpec("empty", 2))
    return broker


def produce(broker, at, count):
    sender = broker.producer()
    for _ in range(count):
        sender.send(Record(b"x", None, [], at.topic, at.partition))


def commit(broker, at, offset, above=0):
    note = CommitNote(above, 2, 0).written() if above else ""
    broker._store.group(GROUP).committed[at] = CommittedOffset(offset, note)


def test_all_that_is_there_lies_in_front_of_a_group_that_nobody_knows(broker):
    produce(broker, FIRST, 5)
    produce(broker, SECOND, 2)
    broker.admin().trim({FIRST: 3})
    assert unresolved_on(broker.admin(), GROUP, "orders") == 4


def test_lag_is_the_end_less_what_is_committed_less_what_is_done_above_it(broker):
    produce(broker, FIRST, 10)
    produce(broker, SECOND, 10)
    commit(broker, FIRST, 4, above=5)
    commit(broker, SECOND, 10)
    assert unresolved_on(broker.admin(), GROUP, "orders") == 1


def test_a_note_that_says_too_much_makes_no_lag_below_nothing(broker):
    produce(broker, FIRST, 10)
    commit(broker, FIRST, 4, above=500)
    commit(broker, SECOND, 0)
    assert unresolved_on(broker.admin(), GROUP, "orders") == 0


def test_what_a_group_has_of_other_topics_is_not_in_front_of_this_one(broker):
    produce(broker, FIRST, 10)
    commit(broker, TopicPartition("empty", 0), 0)
    assert unresolved_on(broker.admin(), GROUP, "orders") == 10
    assert unresolved_on(broker.admin(), GROUP, "empty") == 0


def test_a_topic_that_is_not_there_has_no_lag_that_anybody_knows(broker):
    with pytest.raises(UnknownTopic):
        unresolved_on(broker.admin(), GROUP, "gone")


def test_a_gate_closes_above_one_number_and_opens_at_a_smaller_one():
    gate = LagGate(hold_above=10, release_at=5)
    gate.look(10)
    assert (gate.is_open, gate.allowance) == (True, 0)
    gate.look(11)
    assert (gate.is_open, gate.allowance) == (False, 0)
    gate.look(6)
    assert (gate.is_open, gate.allowance) == (False, 0)
    gate.look(5)
    assert (gate.is_open, gate.allowance) == (True, 5)


def test_a_gate_lets_no_more_through_than_there_was_room_when_it_looked():
    gate = LagGate(hold_above=10, release_at=5)
    gate.look(8)
    for _ in range(5):
        gate.released()
    assert gate.allowance == 0
    gate.look(0)
    assert gate.allowance == 10


def test_a_lag_that_nobody_knows_closes_the_gate():
    gate = LagGate()
    gate.look(0)
    gate.look(None)
    assert (gate.is_open, gate.allowance, gate.lag) == (False, 0, None)


def test_a_group_has_read_all_when_every_end_is_committed(broker):
    readers = [(GROUP, "orders"), (GROUP, "empty")]
    assert is_drained(broker.admin(), readers)
    produce(broker, FIRST, 3)
    assert not is_drained(broker.admin(), readers)
    commit(broker, FIRST, 2)
    assert not is_drained(broker.admin(), readers)
    commit(broker, FIRST, 3)
    assert is_drained(broker.admin(), readers)
    produce(broker, SECOND, 1)
    assert not is_drained(broker.admin(), readers)


def test_what_retention_emptied_is_read_by_who_never_committed(broker):
    produce(broker, FIRST, 3)
    broker.admin().trim({FIRST: 3})
    assert is_drained(broker.admin(), [(GROUP, "orders")])


def test_each_of_two_groups_must_have_read_all(broker):
    produce(broker, FIRST, 1)
    commit(broker, FIRST, 1)
    assert not is_drained(broker.admin(), [(GROUP, "orders"), ("other", "orders")])


def test_commits_of_a_group_that_nobody_knows_are_none(broker):
    assert committed_of(broker.admin(), "nobody") == {}
    commit(broker, FIRST, 7)
    assert committed_of(broker.admin(), GROUP) == {FIRST: 7}
