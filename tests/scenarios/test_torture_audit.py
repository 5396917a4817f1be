"""The audit of `make torture-engine` notices what it is there for."""

from collections import Counter

import pytest

from torture.engine_audit import Hurt, Stored, judge
from torture.ledger import Entry

REJECTED, RETRIED, PLAIN = 0, 1, 410  # numbers whose handler does that; 410 shares a key with 10
EARLIER = 10
NUMBERS = (REJECTED, RETRIED, EARLIER, PLAIN)


def line(kind, number, at, *, offset=None, process=7):
    return Entry(kind, at, 0, number if offset is None else offset, number, process)


def sound():
    acked = [line("a", number, 0.0) for number in NUMBERS]
    return [
        *acked,
        line("x", REJECTED, 1.0),
        line("r", RETRIED, 1.0),
        line("h", EARLIER, 1.0),
        line("h", PLAIN, 1.5),
        line("h", RETRIED, 2.5, offset=500),
    ]


STORED = Stored(Counter(NUMBERS), [(REJECTED, "permanent")])


def judged(entries, stored=STORED, hurts=()):
    return judge(entries, stored, hurts)


def test_a_sound_campaign_has_nothing_to_tell():
    verdict = judged(sound())
    assert (verdict.acked, verdict.delivered) == (4, 5)
    assert (verdict.lost, verdict.doubled, verdict.repeated, verdict.violations) == (0, 0, 0, [])


@pytest.mark.parametrize("number", [RETRIED, EARLIER, PLAIN])
def test_a_record_without_an_outcome_is_lost(number):
    left = [entry for entry in sound() if (entry.kind, entry.number) != ("h", number)]
    assert judged(left).lost == 1


def test_a_rejected_record_without_its_dead_letter_is_lost():
    assert judged(sound(), Stored(Counter(NUMBERS), [])).lost == 1


@pytest.mark.parametrize("letter", [(PLAIN, "permanent"), (REJECTED, "timeout")])
def test_a_dead_letter_that_nobody_asked_for_is_one(letter):
    verdict = judged(sound(), Stored(Counter(NUMBERS), [(REJECTED, "permanent"), letter]))
    assert verdict.unasked_dead_letters == 1


def test_a_record_that_was_stored_twice_is_doubled():
    assert judged(sound(), Stored(Counter([*NUMBERS, PLAIN]), STORED.letters)).doubled == 1


def test_an_acknowledged_record_that_is_not_in_the_log_is_told():
    (told,) = judged(sound(), Stored(Counter(NUMBERS[:-1]), STORED.letters)).violations
    assert "is not in the log" in told


def test_a_retry_that_comes_back_early_is_told():
    early = [entry for entry in sound() if entry.offset != 500]
    (told,) = judged([*early, line("h", RETRIED, 1.9, offset=500)]).violations
    assert "came back 0.900 s later" in told


def test_a_key_out_of_order_is_told():
    late = [entry for entry in sound() if (entry.kind, entry.number) != ("h", EARLIER)]
    (told,) = judged([*late, line("h", EARLIER, 1.8)]).violations
    assert "was handled after 19a of its key" in told


def test_repeats_are_told_unless_a_fault_explains_them():
    entries = [*sound(), line("h", PLAIN, 3.0, process=8)]
    (told,) = judged(entries).violations
    assert "1 were read again, the faults explain 0" in told
    killed = Hurt(7, {0: PLAIN}, float("inf"), 0)
    assert judged(entries, hurts=[killed]).violations == []
    committed_before = Hurt(7, {0: 501}, float("inf"), 0)
    assert len(judged(entries, hurts=[committed_before]).violations) == 1
