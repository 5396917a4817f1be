import shutil
import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forebay.core.envelope import PREFIX, AttemptNote
from forebay.core.failures import Failure
from forebay.core.records import Record
from forebay.core.sinks import SourcePartition
from forebay.engine.ledger import Ledger
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.letters import FOREIGN, LetterFilter, SeveralLetters, UnknownLetter
from forebay.state.schema import migrate
from forebay.state.sqlite.database import SqliteDatabase
from unit.engine.letters_told import (
    BUSY,
    GROUP,
    HERE,
    LETTERS,
    STAGES,
    id_of,
    letter,
    marked,
    origin_of,
    placed,
    source,
)

ALL = LetterFilter()


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "state.db")
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def ledger(database):
    return Ledger(database)


@pytest.fixture
def fold(database):
    """Reads records as the ledger's group does, in one batch."""
    sink = LedgerSink(database, STAGES)

    def fold_records(*records: Record) -> None:
        at = sink.position([HERE])[HERE] or 0
        sink.commit(placed(list(records), at), {HERE: at + len(records)})

    return fold_records


def test_a_dead_letter_is_kept_whole(fold, ledger):
    record = source(3, b"\x00\xff", [("trace_id", b"tr-1"), ("same", b"1"), ("same", None)])
    dead = letter(record)
    fold(dead)
    entry = ledger.one(id_of(record))
    assert (entry.key, entry.value) == (b"customer-3", b"\x00\xff")
    assert list(entry.headers) == list(dead.headers)
    assert (entry.group, entry.pipeline, entry.domain, entry.stage) == (
        *(GROUP, "shop", "shop", "charge"),
    )
    assert entry.origin == origin_of(record)
    assert (entry.dlq_topic, entry.dlq_partition, entry.dlq_offset) == (LETTERS, 0, 0)
    assert entry.trace_id == "tr-1"
    assert (entry.category, entry.reason) == ("transient", "the bank is busy (503)")
    assert (entry.error, entry.stack) == ("HTTPError", "Traceback: …")
    assert entry.fingerprint == BUSY.fingerprint("charge")
    assert (entry.attempts, entry.times_dead_lettered) == (2, 1)
    assert (entry.accepted_ms, entry.first_failed_ms, entry.failed_ms) == (1_003, 4_900, 5_000)
    assert entry.history == (
        AttemptNote(1, 4_900, "transient", "the bank is busy (503)"),
        AttemptNote(2, 5_000, "transient", "the bank is busy (503)"),
    )
    assert (entry.state, entry.replay_number) == ("open", 0)


def test_null_key_and_value_stay_null_and_empty_ones_empty(fold, ledger):
    for number, (key, value) in enumerate([(None, None), (b"", b"")]):
        record = source(number)._replace(key=key, value=value)
        fold(letter(record))
        entry = ledger.one(id_of(record))
        assert (entry.key, entry.value) == (key, value)


def test_a_record_nobody_of_ours_wrote_becomes_an_entry_instead_of_vanishing(fold, ledger):
    fold(Record(b"hello", b"k", [("x", b"1")], LETTERS))
    (entry,) = ledger.find(ALL).items
    assert (entry.category, entry.value, entry.key) == (FOREIGN, b"hello", b"k")
    assert (entry.origin.topic, entry.origin.offset, entry.group) == (LETTERS, 0, "")
    assert (entry.pipeline, entry.stage, entry.state) == ("shop", "charge", "open")


@pytest.mark.parametrize(
    "forged",
    [
        [(PREFIX + "id", b"x"), (PREFIX + "origin", b"[]")],
        [(PREFIX + "marker", b"{")],
        [(PREFIX + "marker", b'{"id": 1}')],
        [(PREFIX + "marker", None)],
        [(PREFIX + "id", b"\xff\x00")],
    ],
)
def test_forged_headers_become_an_entry_instead_of_stopping_the_ledger(fold, ledger, forged):
    fold(Record(b"hello", b"k", forged, LETTERS))
    assert ledger.find(ALL).total == 1


def test_numbers_no_column_can_hold_do_not_stop_the_ledger(fold, ledger):
    record = source()
    huge = [("forebay-origin", b'["orders",0,0,99999999999999999999999]')]
    dead = letter(record)
    forged = [header for header in dead.headers if header[0] != "forebay-origin"] + huge
    fold(
        dead._replace(headers=forged),
        marked(record, "note", 2**64 - 1, at_ms=2**64 - 1, reason="x"),
    )
    entry = ledger.one(id_of(record))
    assert (entry.origin.timestamp_ms, entry.note) == (2**63 - 1, "x")


def test_a_topic_nobody_told_the_ledger_of_is_named_by_itself(database, ledger):
    LedgerSink(database, {}).commit(placed([letter(source())]), {HERE: 1})
    (entry,) = ledger.find(ALL).items
    assert (entry.pipeline, entry.stage) == ("", LETTERS)


def test_the_same_record_read_twice_is_one_entry_dead_lettered_once(fold, ledger, database):
    dead = letter(source())
    fold(dead)
    LedgerSink(database, STAGES).commit(placed([dead]), {HERE: 1})
    page = ledger.find(ALL)
    assert (page.total, page.items[0].times_dead_lettered) == (1, 1)


def test_a_letter_sent_twice_after_an_unknown_outcome_counts_once(fold, ledger):
    record = source()
    fold(letter(record), letter(record, at_ms=5_007))
    entry = ledger.one(id_of(record))
    assert (entry.times_dead_lettered, entry.failed_ms) == (1, 5_007)


def test_reading_an_older_batch_again_moves_no_position_back(database):
    sink = LedgerSink(database, STAGES)
    sink.commit(placed([letter(source())]), {HERE: 10})
    sink.commit(placed([letter(source())]), {HERE: 1})
    assert sink.position([HERE]) == {HERE: 10}


def test_a_topic_that_was_made_again_does_not_hide_its_first_records(database, ledger):
    sink = LedgerSink(database, STAGES)
    again = SourcePartition(LETTERS, 0, "topic-2")
    sink.commit(placed([letter(source(1))]), {HERE: 1})
    sink.commit(placed([letter(source(2))]), {again: 1})
    assert ledger.find(ALL).total == 2


def test_what_a_replay_and_a_person_say_moves_the_entry(fold, ledger):
    record = source()
    steps = [
        (letter(record), "open", 0),
        (marked(record, "replaying", 1, replay_id="r-1"), "replaying", 1),
        (letter(record, at_ms=8_000, replay=(1, "r-1")), "open", 1),
        (marked(record, "replaying", 2, replay_id="r-2"), "replaying", 2),
        (marked(record, "resolved", 2, replay_id="r-2"), "resolved", 2),
        (marked(record, "discarded", 2), "discarded", 2),
        (marked(record, "open_again", 3), "open", 3),
    ]
    for told, state, number in steps:
        fold(told)
        entry = ledger.one(id_of(record))
        assert (entry.state, entry.replay_number) == (state, number)
    assert entry.times_dead_lettered == 2


def test_a_letter_that_comes_late_does_not_open_what_was_resolved(fold, ledger):
    record = source()
    fold(letter(record), marked(record, "resolved"), letter(record, at_ms=5_500))
    assert ledger.one(id_of(record)).state == "resolved"


def test_a_marker_before_its_letter_is_kept_until_the_letter_comes(fold, ledger):
    record = source()
    fold(marked(record, "discarded", actor="ann", reason="a test order"))
    assert ledger.find(ALL).total == 0
    fold(letter(record))
    entry = ledger.one(id_of(record))
    assert (entry.state, entry.state_by) == ("discarded", "ann")
    assert (entry.state_reason, entry.state_ms) == ("a test order", 6_000)


def test_a_note_changes_nothing_but_the_note(fold, ledger):
    record = source()
    fold(letter(record))
    before = ledger.one(id_of(record))
    fold(marked(record, "note", 9, reason="asked the bank"))
    assert ledger.one(id_of(record)) == replace(before, note="asked the bank")


def test_a_letter_of_a_replay_brings_its_content_and_keeps_the_older_attempts(fold, ledger):
    record = source(value=b"old")
    edited = Failure("permanent", "no such account", "KeyError")
    fold(
        letter(record),
        letter(record._replace(value=b"new"), edited, at_ms=8_000, replay=(1, "r-1")),
    )
    entry = ledger.one(id_of(record))
    assert (entry.value, entry.category, entry.replay_id) == (b"new", "permanent", "r-1")
    assert (entry.first_failed_ms, entry.failed_ms) == (4_900, 8_000)
    assert [note.at_ms for note in entry.history] == [4_900, 5_000, 7_900, 8_000]


def test_the_story_tells_everything_in_the_order_it_happened(fold, ledger):
    record = source()
    fold(marked(record, "note", at_ms=7_000, actor="ann", reason="asked the bank"))
    fold(letter(record))
    story = ledger.story(id_of(record))
    assert [(told.kind, told.at_ms, told.actor) for told in story] == [
        ("dead_lettered", 5_000, ""),
        ("note", 7_000, "ann"),
    ]


RECORD = source(0, b"first")
LIFE = [
    letter(RECORD),
    letter(RECORD, at_ms=5_003),
    marked(RECORD, "replaying", 1, replay_id="r-1", actor="ann", reason="bank is back"),
    letter(RECORD._replace(value=b"second"), at_ms=8_000, replay=(1, "r-1")),
    marked(RECORD, "note", at_ms=7_000, reason="asked the bank"),
    marked(RECORD, "note", at_ms=7_500, reason="asked again"),
    marked(RECORD, "replaying", 2, replay_id="r-2", actor="bob", reason="once more"),
    marked(RECORD, "replaying", 2, at_ms=6_001, replay_id="r-3", actor="eve", reason="me too"),
    marked(RECORD, "discarded", 1, actor="ann", reason="too late"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    order=st.lists(st.sampled_from(range(len(LIFE))), max_size=12).flatmap(
        lambda repeats: st.permutations([*range(len(LIFE)), *repeats])
    ),
    cuts=st.sets(st.integers(1, 20), max_size=4),
    subset=st.sets(st.sampled_from(range(len(LIFE)))),
)
def test_any_order_and_any_repeats_of_what_was_told_end_in_the_same_row(order, cuts, subset):
    life = dict(enumerate(placed(LIFE)))
    told = [life[number] for number in order if number in subset]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(told)), len(told)]
    batches = [told[start:end] for start, end in pairwise(bounds)]
    in_order = [[life[number]] for number in sorted(subset)]
    assert rows_after(batches) == rows_after(in_order)


def rows_after(batches: list[list[Record]]) -> list[object]:
    folder = Path(tempfile.mkdtemp(prefix="forebay-test-"))
    database = SqliteDatabase(folder / "state.db")
    database._writer.execute("PRAGMA synchronous = OFF")
    migrate(database)
    sink = LedgerSink(database, STAGES)
    for number, batch in enumerate(batches, start=1):
        sink.commit(batch, {HERE: number})
    rows = [
        *database.read("SELECT * FROM dead_letters"),
        *database.read("SELECT * FROM dead_letter_markers ORDER BY digest"),
    ]
    database.close()
    shutil.rmtree(folder)
    return rows


@pytest.fixture
def several(fold, ledger):
    """Two of one cause, one of another stage's topic and cause; the last is resolved."""
    first = source(1, b'{"name": "M\xc3\xbcller_1"}', [("trace_id", b"tr-1")])
    second = source(2, b"\x00binary needle\xff", [("trace_id", b"tr-2")])
    third = source(3, b"50%", [("trace_id", b"tr-2")])
    away = Failure("transient", "the bank is busy (504)", "HTTPError")
    wrong = Failure("permanent", "no such account 'x'", "KeyError")
    fold(letter(first, at_ms=5_000), letter(second, away, at_ms=6_000))
    fold(letter(third, wrong, at_ms=7_000), marked(third, "resolved"))
    return {id_of(record): number for number, record in enumerate((first, second, third), 1)}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LetterFilter(), [3, 2, 1]),
        (LetterFilter(pipeline="shop"), [3, 2, 1]),
        (LetterFilter(pipeline="sho"), []),
        (LetterFilter(stage="charge"), [3, 2, 1]),
        (LetterFilter(topic="orders"), [3, 2, 1]),
        (LetterFilter(topic=LETTERS), [3, 2, 1]),
        (LetterFilter(topic="refunds"), []),
        (LetterFilter(key=b"customer-2"), [2]),
        (LetterFilter(since_ms=6_000), [3, 2]),
        (LetterFilter(until_ms=6_000), [1]),
        (LetterFilter(since_ms=5_001, until_ms=7_000), [2]),
        (LetterFilter(category="permanent"), [3]),
        (LetterFilter(cause=BUSY.fingerprint("charge")), [2, 1]),
        (LetterFilter(cause=BUSY.fingerprint("charge")[:4].upper()), [2, 1]),
        (LetterFilter(cause=BUSY.fingerprint("charge")[1:]), []),
        (LetterFilter(text="BUSY"), [2, 1]),
        (LetterFilter(text="müller"), [1]),
        (LetterFilter(text="needle"), [2]),
        (LetterFilter(text="customer-3"), [3]),
        (LetterFilter(text="50%"), [3]),
        (LetterFilter(text="r_1"), [1]),
        (LetterFilter(text="r%1"), []),
        (LetterFilter(text="50"), [3, 2, 1]),
        (LetterFilter(state="open"), [2, 1]),
        (LetterFilter(state="resolved", category="transient"), []),
        (LetterFilter(ids=("nothing",)), []),
    ],
)
def test_all_conditions_of_a_filter_hold(several, ledger, wanted, found):
    page = ledger.find(wanted)
    assert [several[entry.id] for entry in page.items] == found
    assert page.total == len(found)


def test_the_total_counts_what_matches_and_not_what_is_shown(several, ledger):
    page = ledger.find(ALL, limit=1)
    assert ([several[entry.id] for entry in page.items], page.total) == ([3], 3)


def test_ids_can_be_asked_for_together(several, ledger):
    ids = tuple(several)[:2]
    assert {entry.id for entry in ledger.find(LetterFilter(ids=ids)).items} == set(ids)


def test_an_entry_is_found_by_its_id_its_trace_id_and_a_beginning_no_other_has(several, ledger):
    (first, *_) = several
    assert ledger.one(first).id == first
    assert ledger.one("tr-1").id == first
    assert ledger.one(first[:12].upper()).id == first


def test_what_means_several_entries_is_answered_with_their_ids(several, ledger):
    with pytest.raises(SeveralLetters, match="tr-2 means several dead letters") as caught:
        ledger.one("tr-2")
    assert sorted(caught.value.ids) == sorted(list(several)[1:])


@pytest.mark.parametrize("asked", ["nothing", "%", "_" * 20])
def test_what_means_no_entry_is_answered_with_where_to_look(several, ledger, asked):
    with pytest.raises(UnknownLetter, match="forebay dlq list"):
        ledger.one(asked)


def test_causes_are_told_with_what_to_do_the_most_open_first(several, ledger):
    busy, account = ledger.causes(ALL)
    assert (busy.fingerprint, busy.open, busy.entries) == (BUSY.fingerprint("charge"), 2, 2)
    assert (busy.pipeline, busy.stage, busy.category) == ("shop", "charge", "transient")
    assert (busy.reason, busy.first_ms, busy.last_ms) == ("the bank is busy (504)", 4_900, 6_000)
    assert busy.what_to_do == "The world was away: see that it is back, then replay."
    assert (account.open, account.entries, account.category) == (0, 1, "permanent")


def test_causes_are_those_of_the_filter(several, ledger):
    assert [cause.category for cause in ledger.causes(LetterFilter(state="open"))] == ["transient"]
    assert ledger.causes(LetterFilter(text="nowhere")) == []
