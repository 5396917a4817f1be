"""Records that no handler should have to meet, and topics that change under a running stage."""

import json

import pytest

from forebay.broker.settings import ConsumerSettings
from forebay.core.envelope import read_envelope
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.testing.waiting import eventually

DECODED = """
@flow.stage(INPUT, name="work", retry=["1s"])
def work(order: dict):
    note(order["number"])
"""
AGAIN = """
@flow.stage(SOURCE, name="work", retry=["1s"], emits=[OUT])
def work(record, context):
    note(f"{context.attempt}:{record.value!r}:{record.key!r}".replace(" ", "_"))
    if context.attempt == 1:
        return Retry("once more")
    return Done(emit={OUT: Record(record.value, record.key, context.headers)})
"""
REFUSED = """
@flow.stage(INPUT, name="work", retry=["1s"])
def work(record, context):
    note(context.attempt)
    raise ConnectionError("the world is away " * 400)
"""
PLAIN = """
@flow.stage(INPUT, name="work", retry=["1s"])
def work(record):
    note(record.value.decode())
"""
FAR_FUTURE_MS = 4_000_000_000_000
HOSTILE = [b"\xff\xfe\x00", b"{", b"", None, b"[1, 2]", b'"text"', b"\x00" * 70_000]


def user_headers(record):
    return [header for header in record.headers if not header[0].startswith("forebay-")]


def test_what_cannot_be_decoded_is_dead_lettered_byte_for_byte(place):
    place.declare(DECODED)
    place.create_topics()
    headers = [("trace", b"\x00\xff"), ("trace", None), ("empty", b"")]
    place.produce([Record(value, b"\xff\x00", headers) for value in HOSTILE])
    place.produce([b'{"number": 1}'])
    ending = place("run", "--until", "idle")
    assert (ending.code, ending.receipt["dead_lettered"]) == (0, len(HOSTILE))
    assert place.notes == {"1": 1}
    letters = place.letters()
    assert {letter.value for letter in letters} == set(HOSTILE)
    for letter in letters:
        assert (letter.key, user_headers(letter)) == (b"\xff\x00", headers)
        assert read_envelope(letter).failure.category == "undecodable"


def forged(place, origin_topic, **changes):
    """As our own records travel, with numbers that a person made up."""
    told = {
        "forebay-id": b"feedfeedfeed",
        "forebay-group": f"{place.name}-work".encode(),
        "forebay-origin": json.dumps([origin_topic, 0, 0, 0]).encode(),
        "forebay-attempt": b"99",
        "forebay-times": b"[0, 0, 0, 0]",
        "forebay-due": b"%d" % FAR_FUTURE_MS,
    }
    return [(name, changes.get(name, value)) for name, value in told.items()]


def test_forged_headers_on_a_foreign_topic_are_neither_obeyed_nor_passed_on(place):
    source = f"{place.name}.foreign"
    place.declare(f'SOURCE = "{source}"\nfrom forebay import Record\n' + AGAIN)
    place.create_topics()
    place.produce([Record(b"x", b"k", [*forged(place, source), ("mine", b"1")])], source)
    running = place.start("run", "--json")
    eventually(lambda: place.records(place.out), within_seconds=20)
    assert running.terminate().code == 0
    assert place.notes == {"1:b'x':b'k'": 1, "2:b'x':b'k'": 1}
    (out,) = place.records(place.out)
    assert out.headers == [("mine", b"1")]
    assert place.letters() == []


def test_a_forged_due_time_or_attempt_changes_little(embedded_place):
    place = embedded_place
    place.declare("SOURCE = INPUT\nfrom forebay import Record\n" + AGAIN)
    place.create_topics()
    tier = f"{place.name}-work.retry.1s"
    headers = forged(place, place.input)
    place.produce([Record(b"far", b"k", headers), Record(b"none", b"k", [])], tier)
    place.produce([Record(b"high", b"k", headers)])
    running = place.start("run", "--json")
    eventually(lambda: len(place.records(place.out)) == 3, within_seconds=10)
    assert running.terminate().code == 0
    assert {note.split(":")[0] for note in place.notes} == {"2"}
    assert place.letters() == []


@pytest.mark.parametrize("size", [999_900, 1_000_000])
def test_a_record_that_no_retry_or_dead_letter_can_hold_becomes_a_ledger_row(place, size):
    place.declare(REFUSED)
    place.create_topics()
    value = b"v" * (size - len(b"key-0"))
    place.produce([value])
    running = place.start("run", "--json")
    eventually(lambda: place.ledger("record_value") == [value], within_seconds=20)
    eventually(lambda: sum(place.committed().values()) == 1, within_seconds=20)
    assert running.terminate().code == 0
    assert place.letters() == []
    (item,) = place("dlq", "list").receipt["items"]
    assert (item["key"], item["topic"]) == ("key-0", place.input)


def test_a_record_that_a_retry_can_hold_without_its_stack_is_retried_without_it(place):
    place.declare(REFUSED)
    place.create_topics()
    value = b"v" * 995_000
    place.produce([value])
    running = place.start("run", "--json")
    (letter,) = eventually(place.letters, within_seconds=20)
    assert running.terminate().code == 0
    envelope = read_envelope(letter)
    assert (letter.value, place.notes) == (value, {"1": 1, "2": 1})
    assert "the world is away" in envelope.failure.reason
    assert envelope.failure.stack == ""


def test_nulls_and_repeated_headers_come_through_retries_as_they_were(place):
    place.declare("SOURCE = INPUT\nfrom forebay import Record\n" + AGAIN)
    place.create_topics()
    headers = [("a", b"1"), ("a", b"2"), ("a", None), ("b", b"")]
    sent = [Record(None, None, headers), Record(None, b"k"), Record(b"", None), Record(b"v", b"")]
    place.produce(sent)
    running = place.start("run", "--json")
    eventually(lambda: len(place.records(place.out)) == len(sent), within_seconds=20)
    assert running.terminate().code == 0
    came = [(record.value, record.key, list(record.headers)) for record in place.records(place.out)]
    assert sorted(map(repr, came)) == sorted(
        repr((record.value, record.key, list(record.headers))) for record in sent
    )


@pytest.mark.parametrize("count", [10, 50, 200])
def test_a_topic_that_is_made_anew_under_a_running_stage_is_read_from_its_beginning(place, count):
    """With fewer records than the old one had, as many, and more: offsets alone tell nothing."""
    place.declare(PLAIN, partitions=2)
    place.create_topics()
    place.produce(b"old-%d" % number for number in range(50))
    with place.running_here(ConsumerSettings(metadata_refresh_seconds=1.0)):
        eventually(lambda: sum(place.committed().values()) == 50, within_seconds=20)
        admin = place.broker.admin()
        admin.delete_topic(place.input)
        admin.create_topic(TopicSpec(place.input, 2))
        place.produce(b"new-%d" % number for number in range(count))
        place.wait_for_notes(50 + count, within_seconds=10)
        eventually(lambda: sum(place.committed().values()) == count, within_seconds=10)
    ages = {"old": 50, "new": count}
    assert place.notes.keys() == {f"{age}-{n}" for age in ages for n in range(ages[age])}


def test_retention_that_passed_a_group_is_counted_told_and_audited(place):
    place.declare(PLAIN, partitions=1)
    place.create_topics()
    place.produce(b"%d" % number for number in range(100))
    at = TopicPartition(place.input, 0)
    first = place("run", "--until", f"{place.input}:0=10").receipt
    assert (first["handled"], first["committed"][f"{place.input}:0"]) == (10, 10)
    place.broker.admin().trim({at: 50})
    second = place("run", "--until", "idle").receipt
    assert second["handled"] == 50
    assert second["stages"]["work"]["expired"] == 40
    assert place.notes.keys() == {str(n) for n in (*range(10), *range(50, 100))}
    audited = place("audit")
    assert audited.code == 1
    assert audited.receipt["records"]["expired"] == 40
    (finding,) = audited.receipt["findings"]
    assert (finding["kind"], finding["from_offset"], finding["to_offset"]) == (
        "expired_range",
        10,
        50,
    )


def test_a_topic_that_was_made_anew_meanwhile_is_read_from_its_beginning(place):
    place.declare(PLAIN, partitions=1)
    place.create_topics()
    place.produce(b"%d" % number for number in range(10))
    assert place("run", "--until", "idle").code == 0
    place.broker.admin().delete_topic(place.input)
    place.broker.admin().create_topic(TopicSpec(place.input, 1))
    place.produce(b"new-%d" % number for number in range(3))
    assert place("run", "--until", "idle").receipt["handled"] == 3
    assert place.committed() == {f"{place.input}:0": 3}
