"""Where a group begins: at its commit, else where its stage says, and never by accident."""

import pytest

from forebay.core.commit_notes import CommitNote, read_note
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.doors import Doors
from forebay.engine.starts import Starts, note_of
from forebay.testing import FakeClock, MemoryBroker

GROUP = "shop-charge"


class Place:
    """A topic, and a group that begins to read it."""

    def __init__(self, partitions: int = 2) -> None:
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock)
        self.admin = self.broker.admin()
        self.admin.create_topic(TopicSpec("orders", partitions))
        self.sender = self.broker.producer()

    def produce(self, partition: int, count: int = 1) -> None:
        for _ in range(count):
            self.sender.send(Record(b"x", None, [], "orders", partition))
        self.sender.poll(0)

    def starts(self, policy: str = "latest") -> Starts:
        consumer = self.broker.consumer(GROUP)
        doors = Doors(consumer, self.broker.producer(), self.admin, self.clock)
        return Starts(doors, {"orders": policy})

    def begin(self, partition: int, policy: str = "latest") -> int:
        """As the engine does it: what is decided is committed at once."""
        at = TopicPartition("orders", partition)
        offset, note = self.starts(policy).of(at)
        group = self.broker._store.group(GROUP)
        group.committed[at] = CommittedOffset(offset, note.written())
        return offset


@pytest.fixture
def place():
    return Place()


def test_the_earliest_is_what_the_log_still_holds(place):
    place.produce(0, 5)
    place.admin.trim({TopicPartition("orders", 0): 3})
    assert place.begin(0, "earliest") == 3


def test_the_latest_is_the_end(place):
    place.produce(0, 5)
    assert place.begin(0) == 5


def test_a_second_member_begins_at_the_time_the_first_one_did(place):
    place.produce(1, 2)
    place.clock.advance(1)
    place.begin(0)
    place.clock.advance(5)
    place.produce(1, 3)
    assert place.begin(1) == 2, "three records came after the group began"


def test_a_member_that_was_killed_before_it_committed_the_other_partition_misses_nothing(place):
    place.begin(0)
    place.clock.advance(1)
    place.produce(1, 4)
    place.clock.advance(600)
    assert place.begin(1) == 0


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_partition_that_is_added_later_begins_at_its_beginning(place, policy):
    place.begin(0, policy)
    place.admin.extend_topic("orders", 3)
    place.produce(2, 7)
    place.clock.advance(60)
    assert place.begin(2, policy) == 0


def test_what_the_group_knew_at_its_beginning_goes_on_being_told(place):
    place.begin(0)
    since_ms = int(place.clock.now() * 1000)
    place.admin.extend_topic("orders", 5)
    place.clock.advance(60)
    place.begin(4)
    committed = place.broker._store.group(GROUP).committed
    notes = {read_note(known.metadata) for known in committed.values()}
    assert notes == {CommitNote(0, 2, since_ms)}


def test_a_partition_beside_one_that_somebody_else_committed_begins_at_its_beginning(place):
    """No note tells when the group began: rather too much than too little."""
    at = TopicPartition("orders", 0)
    place.broker._store.group(GROUP).committed[at] = CommittedOffset(3, "another client")
    place.produce(1, 5)
    assert place.begin(1) == 0


def test_a_topic_without_a_policy_begins_at_its_beginning(place):
    place.admin.create_topic(TopicSpec("shop-charge.orders.again"))
    place.sender.send(Record(b"x", None, [], "shop-charge.orders.again"))
    offset, _ = place.starts().of(TopicPartition("shop-charge.orders.again", 0))
    assert offset == 0


def test_what_was_above_a_commit_is_not_told_again_of_the_next_assignment():
    kept = note_of(CommittedOffset(5, CommitNote(7, 2, 9).written()))
    assert kept == CommitNote(0, 2, 9)
    assert note_of(CommittedOffset(5, "")) == CommitNote(0, 0, 0)
