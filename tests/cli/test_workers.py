"""forebay worker: what it is told, and what it writes down on its own disk."""

import json
import re

import pytest

LARGE = 999_900
OTHER = "127.0.0.2"  # an address of this machine that nobody asks for by default

ORDERS = """
from forebay import Pipeline, Reject

orders = Pipeline("orders")

@orders.stage("orders")
def charge(order: bytes):
    return Reject("no")
"""


@pytest.fixture
def orders(forebay):
    (forebay.folder / "orders.py").write_text(ORDERS)
    forebay("topics", "create", "orders", "--partitions", "2")
    return forebay


def test_several_workers_answer_where_they_were_told_to(orders):
    asked = ("worker", "orders:orders", "charge", "--until", "idle", "--health-host", OTHER)
    for count in ("1", "2"):
        answer = orders(*asked, "--count", count)
        assert (answer.code, f"health http://{OTHER}:" in answer.err) == (0, True)


def test_a_run_answers_where_it_was_told_to(orders):
    answer = orders("run", "orders:orders", "--until", "idle", "--health-host", OTHER)
    assert f"health http://{OTHER}:" in answer.err


def test_a_letter_that_is_kept_outside_the_ledger_is_told_with_its_file(orders):
    orders("topics", "produce", "orders", say="x" * LARGE + "\n")
    answer = orders("worker", "orders:orders", "charge", "--until", "idle", "--log-format", "json")
    told = [json.loads(line) for line in answer.err.splitlines() if line.startswith("{")]
    (aside,) = [event for event in told if "ledger.letter_aside" in event.values()]
    assert aside["state_file"] == str(orders.folder / "forebay-data" / "state.db")
    viewed = orders("dlq", "view", aside["letter_id"])
    assert (viewed.code, bool(re.search("charge", viewed.out))) == (0, True)
