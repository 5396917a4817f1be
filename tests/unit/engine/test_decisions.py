import pytest

from forebay.broker.settings import ProducerSettings
from forebay.core.errors import InvalidRequest, Unavailable
from forebay.core.markers import read_marker
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.decisions import Decision, decide
from forebay.engine.ledger import Ledger
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.letters import LetterFilter
from forebay.state.audit_trail import AuditRow, AuditTrail
from forebay.state.schema import migrate
from forebay.state.sqlite.database import SqliteDatabase
from forebay.testing.memory import MemoryBroker
from unit.engine.letters_told import HERE, LETTERS, STAGES, id_of, letter, marked, placed, source

DISCARD = Decision("discarded", "ann", "a test order", 70_000)


@pytest.fixture
def broker():
    broker = MemoryBroker()
    broker.admin().create_topic(TopicSpec(LETTERS, partitions=1))
    yield broker
    broker.close()


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "state.db")
    migrate(database)
    yield database
    database.close()


@pytest.fixture
def tell(database):
    sink = LedgerSink(database, STAGES)

    def fold(*records: Record) -> None:
        at = sink.position([HERE])[HERE] or 0
        sink.commit(placed(list(records), at), {HERE: at + len(records)})

    return fold


def told(broker) -> list[Record]:
    consumer = broker.consumer(None)
    consumer.assign({TopicPartition(LETTERS, 0): 0})
    records = consumer.poll(0.0)
    consumer.close()
    return records


def letters(database, **wanted):
    return Ledger(database).find(LetterFilter(**wanted)).items


@pytest.mark.parametrize(
    ("kind", "state"), [("discarded", "discarded"), ("resolved", "resolved"), ("note", "open")]
)
def test_a_decision_counts_when_the_ledger_has_read_its_marker(database, broker, tell, kind, state):
    tell(letter(source(1)))
    decision = Decision(kind, "ann", "a test order", 70_000)
    decided = decide(database, broker.producer(), letters(database), decision)
    assert (len(decided.marked), decided.passed_over) == (1, [])
    assert [entry.state for entry in letters(database)] == ["open"]
    tell(*told(broker))
    (entry,) = letters(database)
    assert entry.state == state
    assert "a test order" in (entry.state_reason, entry.note)


def test_a_letter_failing_again_under_an_older_number_does_not_undo_a_discard(
    database, broker, tell
):
    record = source(1)
    tell(letter(record), marked(record, "replaying", 1, replay_id="r-1"))
    decide(database, broker.producer(), letters(database), DISCARD)
    tell(*told(broker), letter(record, at_ms=9_000, replay=(1, "r-1")))
    (entry,) = letters(database)
    assert (entry.state, entry.replay_id) == ("discarded", "r-1")


def test_what_is_decided_already_is_passed_over(database, broker, tell):
    tell(letter(source(1)), letter(source(2)), marked(source(1), "resolved"))
    decided = decide(database, broker.producer(), letters(database), DISCARD)
    assert [entry.id for entry in decided.marked] == [id_of(source(2))]
    assert [entry.id for entry in decided.passed_over] == [id_of(source(1))]
    assert [read_marker(record).id for record in told(broker)] == [id_of(source(2))]


@pytest.mark.parametrize("kind", ["discarded", "resolved", "note"])
@pytest.mark.parametrize("said", [("ann", " "), ("", "because")])
def test_a_decision_without_a_reason_or_a_name_is_refused(database, broker, tell, kind, said):
    tell(letter(source(1)))
    with pytest.raises(InvalidRequest, match="Nothing was done"):
        decide(database, broker.producer(), letters(database), Decision(kind, *said, 1))
    assert told(broker) == []
    assert AuditTrail(database).rows() == []


def test_a_decision_is_in_the_audit_trail_even_if_its_marker_was_not_stored(database, broker, tell):
    tell(letter(source(1)))
    broker.refuse_writes(LETTERS)
    with pytest.raises(Unavailable):
        decide(database, broker.producer(), letters(database), DISCARD)
    (row,) = AuditTrail(database).rows()
    assert row == AuditRow(70_000, "ann", "discard", id_of(source(1)), "a test order", 1)


def test_many_letters_are_decided_together_with_a_small_producer(database, broker, tell):
    tell(*(letter(source(number)) for number in range(25)))
    producer = broker.producer(ProducerSettings(pending_records_max=3))
    decide(database, producer, letters(database), DISCARD)
    assert len(told(broker)) == 25
    (row,) = AuditTrail(database).rows()
    assert (row.affected, row.target[-10:]) == (25, "and 5 more")


def test_nothing_to_decide_leaves_no_trace(database, broker):
    assert decide(database, broker.producer(), [], DISCARD) == ([], [])
    assert AuditTrail(database).rows() == []
