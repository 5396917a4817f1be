"""Marks of many numbers, against what a dictionary would say."""

import random
import tracemalloc

import pytest

from forebay.operations.marks import Marks


def test_marks_are_those_of_a_dictionary_however_numbers_fall():
    chance = random.Random(7)
    marks, expected = Marks(), {}
    for _ in range(20_000):
        number = chance.choice([chance.getrandbits(62), -chance.getrandbits(40), 1024, 0, -1])
        bits = chance.choice([1, 2, 64, 128])
        assert marks.mark(number, bits) == expected.get(number, 0)
        expected[number] = expected.get(number, 0) | bits
    assert len(marks) == len(expected)
    assert dict(marks) == expected
    assert all(marks.of(number) == bits for number, bits in expected.items())
    assert sum(marks.counts().values()) == len(expected)


@pytest.mark.parametrize("held", [0, 1])
def test_a_number_that_is_not_known_stays_away(held):
    marks = Marks()
    for number in range(held):
        marks.mark(number, 1)
    assert marks.mark_known(5, 2) == 0
    assert (marks.of(5), len(marks)) == (0, held)


def test_a_known_number_gets_the_bits():
    marks = Marks()
    marks.mark(5, 1)
    assert marks.mark_known(5, 2) == 1
    assert marks.of(5) == 3


def test_numbers_of_one_slot_are_told_apart_after_growing():
    marks = Marks()
    numbers = [number << 20 for number in range(1, 2_000)]
    for number in numbers:
        marks.mark(number, number >> 20 & 0x7F | 0x80)
    assert all(marks.of(number) == (number >> 20 & 0x7F | 0x80) for number in numbers)
    assert marks.of(2_000 << 20) == 0


def test_a_number_takes_less_than_thirty_bytes():
    tracemalloc.start()
    marks = Marks()
    for number in range(100_000):
        marks.mark(hash(("key", number)), 1)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / 100_000 < 30
