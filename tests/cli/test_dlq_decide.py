import json
from contextlib import ExitStack

import pytest

from cli.shop import PERMANENT, Shop
from unit.engine.letters_told import BUSY, letter, marked, source


@pytest.fixture
def shop(forebay):
    with ExitStack() as closing:
        yield Shop(forebay, closing)


def states(shop):
    shop.fold()
    return {item["offset"]: item["state"] for item in shop("list", "--json").items}


@pytest.mark.parametrize(("command", "state"), [("resolve", "resolved"), ("discard", "discarded")])
def test_a_decision_is_a_marker_that_the_ledger_reads_with_its_reason(shop, command, state):
    first, _ = shop.give_up(b"1", b"2")
    answer = shop(command, first[:9], "--reason", "entered by hand", "--yes", "--json")
    assert (answer.code, answer.object["total"]) == (0, 1)
    assert [item["id"] for item in answer.items] == [first]
    (marker,) = shop.markers()
    assert (marker.id, marker.kind, marker.reason) == (first, state, "entered by hand")
    assert states(shop) == {0: state, 1: "open"}
    assert shop.audit() == [(command, first, "entered by hand")]
    event = json.loads(answer.err.splitlines()[0])
    assert (event["action"], event["affected"]) == (f"dlq.{command}", 1)
    assert f"{state} by uid" in shop("view", first).out


def test_many_are_decided_by_filter_and_only_those(shop):
    shop.give_up(b"1", b"2", failure=BUSY)
    shop.give_up(b"3", first=2)
    dry = shop("discard", "--text", "bank is busy", "--dry-run", "--json")
    assert "This would discard 2 dead letters (text bank is busy)" in dry.err
    assert (dry.object["total"], dry.object["dry_run"]) == (2, True)
    assert shop.markers() == []
    shop("discard", "--text", "bank is busy", "--reason", "too late", "-y")
    assert states(shop) == {0: "discarded", 1: "discarded", 2: "open"}


def test_what_was_decided_before_is_left_alone(shop):
    (id,) = shop.give_up(b"1")
    shop.tell(marked(source(0), "resolved"))
    answer = shop("discard", id, "--reason", "x", "--yes")
    assert (answer.code, "open or replaying matches" in answer.err) == (1, True)
    none = shop("discard", "--pipeline", "shop", "--reason", "x", "--yes", "--json")
    assert (none.code, none.object["total"]) == (0, 0)
    assert len(shop.markers()) == 1


def test_thousands_are_decided_and_none_of_them_twice(shop):
    shop.tell(*(letter(source(number), PERMANENT, at_ms=5_000) for number in range(2_100)))
    answer = shop("discard", "--state", "open", "--reason", "a flood", "--yes", "--json")
    assert (answer.object["total"], len(answer.items)) == (2_100, 100)
    assert len({marker.id for marker in shop.markers()}) == len(shop.markers()) == 2_100
    assert sum(row.affected for row in shop.audit_rows("discard")) == 2_100


def test_nothing_is_decided_without_a_yes(shop):
    (id,) = shop.give_up(b"1")
    asked = shop("resolve", id, "--reason", "x")
    assert (asked.code, "add --yes" in asked.err) == (2, True)
    assert shop.markers() == []


def test_a_note_is_read_by_others_and_changes_nothing(shop):
    (id,) = shop.give_up(b"1")
    answer = shop("note", id, "asked the sender on Monday")
    assert answer.code == 0
    assert states(shop) == {0: "open"}
    assert "note      asked the sender on Monday" in shop("view", id).out
    assert shop.audit() == [("note", id, "asked the sender on Monday")]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["discard", "x"], 2, "To discard dead letters needs a reason"),
        (["resolve", "x"], 2, "To resolve dead letters needs a reason"),
        (["discard", "--state", "open", "--reason", ""], 2, "needs a reason"),
        (["discard", "--reason", "x", "--yes"], 2, "Name an ID, or a filter"),
        (["resolve", "--dry-run"], 2, "Name an ID, or a filter"),
        (["discard", "nix", "--reason", "x", "--yes"], 1, "No dead letter has the id"),
        (["resolve", "nix", "--key", "x", "--reason", "x"], 2, "write either"),
        (["discard", "--from", "soon", "--reason", "x"], 2, "is no time"),
    ],
)
def test_wrong_use_gets_a_sentence_and_decides_nothing(shop, arguments, code, says):
    shop.give_up(b"1")
    answer = shop(*arguments)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert shop.markers() == []


def test_an_empty_note_is_refused(shop):
    (id,) = shop.give_up(b"1")
    answer = shop("note", id, " ")
    assert (answer.code, "needs a reason" in answer.err) == (1, True)
