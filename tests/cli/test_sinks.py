"""A sink whose next records are gone holds until a person lets it go on."""

import pytest

ROWS = """
from forebay import Pipeline

rows = Pipeline("rows")

@rows.sink("in", file="out.ndjson")
def row(value: dict):
    return value
"""


@pytest.fixture
def rows(forebay):
    (forebay.folder / "rows.py").write_text(ROWS)
    forebay("topics", "create", "in")
    produce(forebay, 0, 5)
    assert forebay("run", "rows:rows", "--until", "idle").code == 0
    produce(forebay, 5, 10)
    forebay("topics", "trim", "in", "--before", "8", "--yes")
    return forebay


def produce(forebay, start, stop):
    lines = "\n".join(f'{{"n": {n}}}' for n in range(start, stop))
    assert forebay("topics", "produce", "in", say=lines).code == 0


def stored(forebay):
    return (forebay.folder / "out.ndjson").read_text().splitlines()


def test_a_sink_behind_the_log_stores_nothing_before_somebody_decides(rows):
    answer = rows("worker", "rows:rows", "row", "--until", "for=2s", "--log-level", "warning")
    assert "3 records were deleted before they were stored" in answer.err
    assert len(stored(rows)) == 5
    (listed,) = rows("sinks", "list", "rows:rows", "--json").items
    assert (listed["stored_up_to"], listed["low"], listed["end"], listed["gone"]) == (5, 8, 10, 3)


def test_a_skip_is_told_first_and_then_the_sink_goes_on_without_doubling(rows):
    dry = rows("sinks", "skip", "rows:rows", "row", "--dry-run", "--json")
    assert dry.items == [{"topic": "in", "partition": 0, "from": 5, "to": 8}]
    assert "3 records" in dry.err
    assert rows("sinks", "skip", "rows:rows", "row").code == 2
    done = rows("sinks", "skip", "rows:rows", "row", "--yes", "--reason", "an outage")
    assert done.code == 0
    assert rows("run", "rows:rows", "--until", "idle").code == 0
    assert stored(rows)[5:] == ['{"n":8}', '{"n":9}']
    again = rows("sinks", "skip", "rows:rows", "row", "--yes")
    assert "Nothing is gone" in again.out


def test_a_sink_that_is_not_there_is_told_with_those_that_are(rows):
    answer = rows("sinks", "skip", "rows:rows", "raw", "--dry-run")
    assert answer.code == 2
    assert "it has row" in answer.err
