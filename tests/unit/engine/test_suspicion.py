"""Which records are thought to kill their process, and who is alone when that is found out."""

from forebay.engine.single_file import (
    PATIENCE_SECONDS,
    UNASSIGNED_SECONDS,
    Named,
    Place,
    Reach,
    SingleFile,
)
from forebay.engine.suspicion import Suspicion

A, B = Place("shop-charge", "orders", 0), Place("shop-charge", "orders", 1)


def named(place: Place, offset: int) -> list[object]:
    return [*place, offset]


# The supervisor's side.


def test_one_death_accuses_nobody():
    suspicion = Suspicion()
    suspicion.died({A: 5}, None)
    assert (suspicion.suspects, suspicion.killers) == ({}, [])


def test_two_deaths_at_the_same_place_accuse_it():
    suspicion = Suspicion()
    suspicion.died({A: 5, B: 7}, None)
    suspicion.died({A: 5, B: 9}, None)
    assert suspicion.suspects == {A: 5}


def test_a_partition_that_moved_in_between_is_not_accused():
    suspicion = Suspicion()
    suspicion.died({A: 5}, None)
    suspicion.died({A: 6}, None)
    assert suspicion.suspects == {}
    suspicion.died({A: 6}, None)
    assert suspicion.suspects == {A: 6}


def test_a_partition_without_records_left_is_not_accused():
    suspicion = Suspicion()
    suspicion.died({A: 5}, None)
    suspicion.died({}, None)
    suspicion.died({A: 5}, None)
    assert suspicion.suspects == {}


def test_a_death_says_whether_anything_moved_since_the_last():
    suspicion = Suspicion()
    assert not suspicion.died({A: 5, B: 1}, None)
    assert not suspicion.died({A: 5, B: 1}, None)
    assert suspicion.died({A: 5, B: 2}, None)
    assert suspicion.died({A: 5}, None)


def test_a_record_is_a_killer_when_it_was_named_at_two_deaths():
    suspicion = Suspicion()
    suspicion.died({A: 5}, None)
    suspicion.died({A: 5}, named(A, 5))
    assert suspicion.killers == []
    suspicion.died({A: 5}, named(A, 6))
    assert suspicion.killers == []
    suspicion.died({A: 5}, named(A, 5))
    assert suspicion.killers == [Named(A, 5)]


# The child's side.


def single_file(suspects, *killers, now=0.0):
    told = []
    return SingleFile(suspects, killers, told.append, now), told


def test_a_record_is_named_before_it_has_its_turn_and_has_it_alone():
    single, told = single_file({A: Reach(10, 20)})
    assert single.take_turn(Named(A, 5))
    assert told == [Named(A, 5)]
    assert not single.take_turn(Named(B, 7))
    assert told == [Named(A, 5)]
    single.give_turn_back()
    assert single.take_turn(Named(B, 7))


def test_a_slow_partition_is_looked_at_to_the_near_end_and_a_fast_one_further():
    single, _ = single_file({A: Reach(10, 20), B: Reach(10, 20)})
    single.reached(A, 10, PATIENCE_SECONDS - 1)
    assert single.is_suspect(A)
    single.reached(A, 20, PATIENCE_SECONDS - 1)
    assert not single.is_suspect(A)
    single.reached(B, 9, PATIENCE_SECONDS + 1)
    assert single.is_suspect(B)
    single.reached(B, 10, PATIENCE_SECONDS + 1)
    assert single.is_over


def test_a_partition_at_its_end_is_cleared():
    single, _ = single_file({A: Reach(10, 20)})
    single.reached_the_end(B)
    assert not single.is_over
    single.reached_the_end(A)
    assert single.is_over


def test_a_partition_that_others_were_given_is_waited_for_a_while_only():
    other_group = Place("shop-ship", "orders", 0)
    single, _ = single_file({A: Reach(10, 20), B: Reach(10, 20), other_group: Reach(1, 2)})
    single.drop_what_is_elsewhere({A}, "shop-charge", UNASSIGNED_SECONDS - 1)
    assert single.is_suspect(B)
    single.drop_what_is_elsewhere({A}, "shop-charge", UNASSIGNED_SECONDS)
    assert (single.is_suspect(A), single.is_suspect(B)) == (True, False)
    assert single.is_suspect(other_group), "another stage answers for it"


def test_only_the_very_record_is_a_killer():
    single, _ = single_file({A: Reach(10, 20)}, Named(A, 5))
    assert single.is_killer(Named(A, 5))
    assert not single.is_killer(Named(A, 6))
    assert not single.is_killer(Named(B, 5))
