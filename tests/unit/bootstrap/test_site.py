"""What a process writes down that does not keep the ledger."""

import pytest

from forebay import Pipeline
from forebay.bootstrap import open_site
from forebay.core.envelope import Envelope, Origin
from forebay.core.failures import Failure
from forebay.core.records import Record, TopicPartition
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.doors import ExpiredRange
from forebay.engine.routes import LEDGER
from forebay.settings import Flags, read_settings
from forebay.testing.memory import MemoryBroker

LETTER = DeadLetter(
    Record(b"large", topic="orders", partition=0, offset=3),
    Envelope(
        "letter-1", "orders-charge", Origin("orders", 0, 3, 0), 1, 0, failure=Failure("x", "y")
    ),
)
GAP = ExpiredRange("orders-charge", TopicPartition("orders", 0), 3, 9)


def told_by(part, folder):
    """The events of a process that keeps a letter and records a gap."""
    pipeline = Pipeline("orders")
    pipeline.stage("orders", name="charge", dead_letters="orders.dlq")(lambda order: None)
    told = []

    def emit(event, **fields):
        told.append((event, fields))

    settings = read_settings(Flags(folder=folder), {})
    with open_site(settings, MemoryBroker(), emit, part=part) as site:
        site.open_spill(pipeline).keep(LETTER, "orders.dlq")
        site.expired(GAP)
    return told


@pytest.mark.parametrize("part", ["charge", "download", "retry-scheduler"])
def test_a_worker_without_the_ledger_says_where_it_kept_what_belongs_there(part, tmp_path):
    (letter, about_letter), (gap, about_gap) = told_by(part, tmp_path)
    assert (letter, gap) == ("ledger.letter_aside", "ledger.gap_aside")
    assert about_letter["letter_id"] == "letter-1"
    assert (about_gap["from_offset"], about_gap["to_offset"]) == (3, 9)
    there = str(tmp_path / "state.db")
    assert about_letter["state_file"] == about_gap["state_file"] == there


@pytest.mark.parametrize("part", ["all", "records", "sinks", LEDGER])
def test_who_keeps_the_ledger_has_nothing_to_add(part, tmp_path):
    assert told_by(part, tmp_path) == []
    assert (tmp_path / "state.db").exists()
