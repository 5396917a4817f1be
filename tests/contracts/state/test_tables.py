"""The small tables of state/, on every database."""

from contextlib import suppress

import pytest

from forebay.state.audit_trail import AuditRow, AuditTrail
from forebay.state.expired_ranges import ExpiredRange, ExpiredRanges
from forebay.state.schema import migrate
from forebay.state.seen import SeenTable, Sighting


@pytest.fixture(autouse=True)
def tables(database):
    migrate(database)


def undone(database, work) -> None:
    with suppress(ZeroDivisionError), database.transaction() as transaction:
        work(transaction)
        raise ZeroDivisionError


def test_a_key_is_known_by_its_fingerprints_alone(database):
    seen = SeenTable(database)
    seen.add([Sighting("tr-1", "url-a", 10), Sighting("tr-1", "url-b", 10)])
    seen.add([Sighting("tr-2", "url-a", 10)])
    assert seen.known(["tr-1", "tr-3"]) == {("tr-1", "url-a"), ("tr-1", "url-b")}


def test_more_keys_than_a_statement_can_hold_are_all_looked_up(database):
    seen = SeenTable(database)
    keys = [f"tr-{number}" for number in range(1_203)]
    seen.add(Sighting(key, "", 10) for key in keys)
    assert len(seen.known([*keys, "tr-unknown"])) == 1_203


def test_a_sighting_added_twice_is_forgotten_by_the_later_time(database):
    seen = SeenTable(database)
    seen.add([Sighting("tr-1", "a", 30), Sighting("tr-2", "a", 10)])
    seen.add([Sighting("tr-1", "a", 20)])
    seen.forget_before(25)
    assert seen.known(["tr-1", "tr-2"]) == {("tr-1", "a")}


def test_sightings_are_undone_with_the_transaction_they_were_added_in(database):
    seen = SeenTable(database)
    undone(database, lambda transaction: seen.add([Sighting("tr-1", "a", 10)], transaction))
    assert seen.known(["tr-1"]) == set()


def test_an_audit_row_is_undone_with_the_change_it_tells_of(database):
    trail = AuditTrail(database)
    kept = AuditRow(10, "ann", "discard", "7f3a", "a test order", 1)
    trail.record(kept)
    undone(database, lambda transaction: trail.record(kept._replace(actor="bob"), transaction))
    assert trail.rows() == [kept]


def test_audit_rows_of_one_moment_keep_their_order_the_newest_first(database):
    trail = AuditTrail(database)
    told = [AuditRow(10, "ann", "note", f"{n % 2}", "", 1) for n in range(4)]
    for number, row in enumerate(told):
        trail.record(row._replace(reason=str(number)))
    assert [row.reason for row in trail.rows(limit=3)] == ["3", "2", "1"]
    assert [row.reason for row in trail.rows(target="1")] == ["3", "1"]


def test_a_gap_told_twice_is_one_gap(database):
    ranges = ExpiredRanges(database)
    gap = ExpiredRange("g", "orders", 3, 10, 20, 99)
    ranges.record(gap)
    ranges.record(gap)
    ranges.record(gap._replace(group="h", at_ms=50))
    assert ranges.rows() == [gap._replace(group="h", at_ms=50), gap]
    assert ranges.rows("g") == [gap]
