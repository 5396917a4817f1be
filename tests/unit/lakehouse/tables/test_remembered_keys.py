import polars as pl

from forebay.lakehouse.tables.delta.remembered_keys import RememberedKeys


def hashes(*values):
    return pl.Series("hash", values, dtype=pl.UInt64)


class Partition:
    """Counts how often it is read."""

    def __init__(self, *values):
        self.values = hashes(*values)
        self.reads = 0

    def load(self):
        self.reads += 1
        return self.values


def test_a_partition_is_read_once():
    remembered, monday = RememberedKeys(), Partition(1, 2)
    assert remembered.may_hold(("mon",), hashes(2, 3), monday.load).to_list() == [True, False]
    assert remembered.may_hold(("mon",), hashes(1, 4), monday.load).to_list() == [True, False]
    assert monday.reads == 1


def test_what_was_added_is_known_and_only_there():
    remembered, monday, tuesday = RememberedKeys(), Partition(), Partition()
    remembered.may_hold(("mon",), hashes(1), monday.load)
    remembered.add(("mon",), hashes(1))
    assert remembered.may_hold(("mon",), hashes(1), monday.load).to_list() == [True]
    assert remembered.may_hold(("tue",), hashes(1), tuesday.load).to_list() == [False]


def test_what_was_added_to_a_partition_that_was_never_read_is_not_taken_for_all_of_it():
    remembered, monday = RememberedKeys(), Partition(1, 2)
    remembered.add(("mon",), hashes(2))
    assert remembered.may_hold(("mon",), hashes(1), monday.load).to_list() == [True]


def test_the_partition_touched_longest_ago_makes_room():
    remembered = RememberedKeys(keys_max=4)
    monday, tuesday, wednesday = Partition(1, 2), Partition(3, 4), Partition(5, 6)
    for values, partition in (("mon", monday), ("tue", tuesday), ("mon", monday)):
        remembered.may_hold((values,), hashes(1), partition.load)
    remembered.may_hold(("wed",), hashes(1), wednesday.load)
    remembered.may_hold(("mon",), hashes(1), monday.load)
    remembered.may_hold(("tue",), hashes(1), tuesday.load)
    assert (monday.reads, tuesday.reads, wednesday.reads) == (1, 2, 1)
    assert len(remembered) <= 4


def test_a_partition_larger_than_all_the_room_is_read_again_each_time_and_still_right():
    remembered, large = RememberedKeys(keys_max=2), Partition(1, 2, 3)
    for _ in range(2):
        assert remembered.may_hold((), hashes(3, 4), large.load).to_list() == [True, False]
        remembered.add((), hashes(4))
    assert large.reads == 2
    assert len(remembered) == 0


def test_what_is_forgotten_is_read_again():
    remembered, monday = RememberedKeys(), Partition(1)
    remembered.may_hold(("mon",), hashes(1), monday.load)
    remembered.forget()
    remembered.may_hold(("mon",), hashes(1), monday.load)
    assert monday.reads == 2
