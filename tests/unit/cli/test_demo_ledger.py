import itertools

import pytest

from forebay.cli.demo.ledger import Handled, Ledger, LedgerReader, audit, taken_over_ms
from forebay.cli.demo.progress import Moment, Rates
from forebay.cli.demo.worker import paced


@pytest.fixture
def file(tmp_path):
    return tmp_path / "one.ledger"


def handled(*ids):
    return [Handled(id_, 0, 1) for id_ in ids]


def test_a_record_that_nobody_handled_is_lost_and_one_handled_twice_is_repeated():
    found = audit(["a", "b", "c"], handled("a", "a", "b"))
    assert (found.produced, found.consumed, found.lost, found.repeated) == (3, 2, 1, 1)


def test_a_report_that_came_after_the_record_was_handled_is_no_repeat():
    found = audit([], handled("a"))
    assert (found.lost, found.repeated) == (0, 0)


def test_a_reader_finds_what_was_written_and_goes_on_where_it_stopped(file):
    ledger, reader = Ledger(file), LedgerReader(file)
    reader.catch_up()
    ledger.owns({3, 1})
    ledger.handled([Handled("a", 3, 17)])
    reader.catch_up()
    ledger.owns([])
    ledger.produced(["b"])
    reader.catch_up()
    assert (reader.owned, reader.handled) == (frozenset(), [Handled("a", 3, 17)])
    assert reader.produced == ["b"]


def test_a_line_torn_by_a_kill_does_not_count_until_it_is_whole(file):
    reader = LedgerReader(file)
    file.write_bytes(b"produced a\nprodu")
    reader.catch_up()
    assert reader.produced == ["a"]
    with file.open("ab") as more:
        more.write(b"ced b\n")
    reader.catch_up()
    assert reader.produced == ["a", "b"]


def test_a_takeover_is_counted_from_the_kill_and_from_orphaned_partitions_only(file):
    ledger, reader = Ledger(file), LedgerReader(file)
    assert taken_over_ms(frozenset({1}), 1_000_000, reader) is None
    ledger.handled([Handled("a", 1, 500_000), Handled("b", 2, 2_000_000)])
    ledger.handled([Handled("c", 1, 4_000_000)])
    reader.catch_up()
    assert taken_over_ms(frozenset({1}), 1_000_000, reader) == 3.0


def test_rates_are_over_the_last_moments_only():
    rates = Rates()
    assert rates.produced == 0
    for second in range(20):
        rates.add(Moment(second, 100 * min(second, 10), 50 * second))
    assert (rates.produced, rates.handled) == (0, 50)


@pytest.mark.parametrize("rate", [0, 1e9])
def test_pacing_hands_out_every_number_once(rate):
    assert list(itertools.chain.from_iterable(paced(250, rate))) == list(range(250))
