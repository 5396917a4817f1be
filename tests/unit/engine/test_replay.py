import pytest

from forebay.broker.port import Report
from forebay.broker.settings import ProducerSettings
from forebay.core.envelope import user_headers
from forebay.core.errors import AccessDenied, InvalidRequest, UnknownTopic
from forebay.core.markers import Marker
from forebay.core.records import Record
from forebay.core.topics import TopicSpec
from forebay.engine.letters import LetterFilter
from forebay.engine.replay import ReplayRun
from forebay.engine.replay_book import ReplayBook
from forebay.engine.replay_plans import (
    Edit,
    cancel_plan,
    draft_plan,
    load_plan,
    original_value,
    unfinished_plans,
)
from forebay.state.audit_trail import AuditTrail
from forebay.testing.memory import MemoryBroker
from unit.engine.letters_told import GROUP, INPUT, LETTERS, id_of, letter, marked, source
from unit.engine.replay_stage import AGAIN, ALL, HEADERS, NOW, NOW_MS, Stage, envelope_of, request


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.database.close()


def test_a_record_goes_back_as_it_was_under_a_fresh_envelope(stage):
    (record,) = stage.give_up(3)
    plan = stage.plan()
    stage.carry_out(plan)
    (again,) = stage.replayed()
    assert (again.key, again.value) == (record.key, record.value)
    assert user_headers(again.headers) == HEADERS
    envelope = envelope_of(again)
    assert (envelope.id, envelope.group) == (id_of(record), GROUP)
    assert (envelope.origin.topic, envelope.origin.offset) == (INPUT, 3)
    assert (envelope.attempt, envelope.failure, envelope.history) == (1, None, ())
    assert (envelope.replay_id, envelope.replay_number) == (plan.id, 1)
    assert envelope.accepted_ms == record.timestamp_ms


def test_what_was_republished_is_replaying_until_a_handler_says_how_it_ended(stage):
    record, other = stage.give_up(1, 2)
    plan = stage.plan()
    stage.carry_out(plan)
    assert [entry.state for entry in stage.ledger.find(ALL).items] == ["replaying"] * 2
    stage.tell(marked(record, "resolved", 1, replay_id=plan.id))
    stage.tell(letter(other, at_ms=9_000, replay=(1, plan.id)))
    assert stage.ledger.one(id_of(record)).state == "resolved"
    failed = stage.ledger.one(id_of(other))
    assert (failed.state, failed.replay_number, failed.times_dead_lettered) == ("open", 1, 2)


def test_the_marker_says_who_and_why(stage):
    (record,) = stage.give_up(1)
    plan = stage.plan()
    stage.carry_out(plan)
    assert stage.markers() == [
        Marker(id_of(record), GROUP, "replaying", 1, plan.id, NOW_MS, "ann", "the bank is back")
    ]


def test_failures_that_arrive_after_the_plan_are_not_in_it(stage):
    stage.give_up(1, 2)
    plan = stage.plan()
    (late,) = stage.give_up(3)
    stage.carry_out(plan)
    assert len(stage.replayed()) == 2
    assert id_of(late) not in stage.replayed_ids()


def test_a_replay_that_fails_again_ends_and_its_next_plan_is_another(stage):
    (record,) = stage.give_up(1)
    first = stage.plan()
    stage.carry_out(first)
    stage.tell(letter(record, at_ms=9_000, replay=(1, first.id)))
    stage.carry_out(load_plan(stage.database, first.id))
    assert len(stage.replayed()) == 1
    stage.carry_out(stage.plan())
    assert sorted(envelope_of(again).replay_number for again in stage.replayed()) == [1, 2]


@pytest.mark.parametrize("kind", ["resolved", "discarded"])
def test_what_was_decided_meanwhile_is_passed_over(stage, kind):
    record, other = stage.give_up(1, 2)
    plan = stage.plan()
    stage.tell(marked(record, kind))
    run = stage.carry_out(plan)
    assert stage.replayed_ids() == {id_of(other): 1}
    assert run.progress[:5] == (0, 0, 1, 1, 0)
    ((passed, why),) = ReplayBook(stage.database, plan.id).passed_over()
    assert (passed, why) == (id_of(record), f"it was {kind} since the plan was made")


def test_what_another_ledger_replayed_meanwhile_is_passed_over_although_it_is_open(stage):
    (record,) = stage.give_up(1)
    plan = stage.plan()
    stage.tell(letter(record, at_ms=9_000, replay=(1, "r-elsewhere")))
    stage.carry_out(plan)
    assert stage.replayed() == []
    ((_, why),) = ReplayBook(stage.database, plan.id).passed_over()
    assert why == "it was replayed since the plan was made"


def test_of_two_replays_of_one_letter_the_first_to_claim_wins(stage):
    stage.give_up(*range(10))
    one, other = stage.plan(), stage.plan()
    first, second = stage.run(one, rate=3), stage.run(other, rate=4)
    for _ in range(100):
        waits = [run.step(stage.clock.now()) for run in (first, second)]
        stage.clock.advance(0.5)
    assert waits == [None, None]
    assert set(stage.replayed_ids().values()) == {1}
    assert len(stage.replayed_ids()) == 10
    assert first.progress.sent + second.progress.sent == 10
    assert first.progress.passed_over + second.progress.passed_over == 10
    ((_, why), *_) = ReplayBook(stage.database, one.id).passed_over()
    assert why == f"replay {other.id} has it"


def test_a_plan_cancelled_half_way_leaves_the_rest_to_others(stage):
    stage.give_up(*range(4))
    plan = stage.plan()
    run = stage.run(plan, rate=2)
    run.step(NOW)
    run.step(NOW)
    run.step(NOW)
    assert cancel_plan(stage.database, plan.id, "bob", "wrong ones", NOW_MS) == 2
    stage.carry_out(load_plan(stage.database, plan.id))
    stage.carry_out(stage.plan())
    assert set(stage.replayed_ids().values()) == {1}
    assert len(stage.replayed_ids()) == 4


def test_a_claim_of_a_cancelled_plan_does_not_block_the_letter_for_ever(stage):
    stage.give_up(1)
    plan = stage.plan()
    stage.broker.refuse_writes(AGAIN)
    stage.run(plan).step(NOW)
    cancel_plan(stage.database, plan.id, "bob", "wrong ones", NOW_MS)
    stage.broker.accept_writes(AGAIN)
    stage.carry_out(stage.plan())
    assert len(stage.replayed()) == 1


def test_a_rate_is_kept(stage):
    stage.give_up(*range(20))
    seconds = stage.finish(stage.run(stage.plan(), rate=4))
    assert 4.0 <= seconds <= 4.5
    assert len(stage.replayed()) == 20


def test_more_letters_than_a_producer_can_hold_are_all_sent(stage):
    stage.give_up(*range(30))
    small = stage.broker.producer(ProducerSettings(pending_records_max=7))
    stage.carry_out(stage.plan(), producer=small)
    assert stage.replayed_ids() == {id_of(source(number)): 1 for number in range(30)}


def test_a_re_entry_that_refuses_for_a_while_loses_nothing_and_says_so(stage):
    stage.give_up(1, 2)
    stage.broker.refuse_writes(AGAIN)
    run = stage.run(stage.plan())
    for _ in range(5):
        stage.clock.advance(run.step(stage.clock.now()))
    assert "Writes to shop-charge.orders.again are refused" in run.progress.trouble
    assert stage.markers() == []
    stage.broker.accept_writes(AGAIN)
    stage.finish(run)
    assert (run.progress.sent, run.progress.trouble) == (2, "")
    assert set(stage.replayed_ids().values()) == {1}


def test_a_marker_that_is_refused_for_a_while_sends_no_record_again(stage):
    stage.give_up(1, 2)
    stage.broker.refuse_writes(LETTERS)
    run = stage.run(stage.plan())
    for _ in range(5):
        stage.clock.advance(run.step(stage.clock.now()))
    assert run.progress.published == 2
    stage.broker.accept_writes(LETTERS)
    stage.finish(run)
    assert (run.progress.sent, len(stage.markers())) == (2, 2)
    assert set(stage.replayed_ids().values()) == {1}


def test_a_clock_that_is_set_back_holds_nothing_up(stage):
    stage.give_up(1)
    stage.broker.refuse_writes(AGAIN)
    run = stage.run(stage.plan(), rate=1)
    run.step(NOW)
    run.step(NOW)
    stage.broker.accept_writes(AGAIN)
    stage.clock.advance(-3600)
    assert stage.finish(run) < 5


def test_a_topic_that_is_missing_stops_the_run_and_the_plan_goes_on_when_it_is_there(stage):
    stage.give_up(1, 2)
    stage.broker.admin().delete_topic(AGAIN)
    plan = stage.plan()
    with pytest.raises(UnknownTopic):
        stage.finish(stage.run(plan))
    assert unfinished_plans(stage.database) == [plan.id]
    stage.broker.admin().create_topic(TopicSpec(AGAIN, partitions=2))
    stage.carry_out(load_plan(stage.database, plan.id))
    assert len(stage.replayed_ids()) == 2
    assert unfinished_plans(stage.database) == []


class DeniedOnce:
    """The broker grants nothing until a person acts, and tells so in its reports."""

    def __init__(self, producer) -> None:
        self._producer = producer
        self._denied: list[Report] = []
        self._is_denied = True

    def send(self, record, token=None) -> None:
        if self._is_denied:
            error = AccessDenied("Grant Write.")
            self._denied.append(Report(token, record.topic, 0, -1, -1, error))
        else:
            self._producer.send(record, token)

    def poll(self, timeout_seconds):
        denied, self._denied = self._denied, []
        self._is_denied = self._is_denied and not denied
        return denied or self._producer.poll(timeout_seconds)


def test_what_a_person_must_grant_stops_the_run_and_nothing_is_forgotten(stage):
    stage.give_up(1, 2)
    run = stage.run(stage.plan(), producer=DeniedOnce(stage.broker.producer()))
    with pytest.raises(AccessDenied):
        stage.finish(run)
    assert run.progress[:2] == (2, 0)
    stage.finish(run)
    assert run.progress.sent == 2
    assert set(stage.replayed_ids().values()) == {1}


def test_a_letter_no_stage_takes_back_is_refused_and_left_to_others(stage):
    stage.give_up(1)
    run = ReplayRun(stage.database, stage.broker.producer(), stage.plan(), {})
    stage.finish(run)
    assert run.progress.refused == 1
    stage.carry_out(stage.plan())
    assert len(stage.replayed()) == 1


def test_an_edited_value_that_is_too_large_is_refused_and_left_to_others(stage):
    (record,) = stage.give_up(1)
    small = MemoryBroker(stage.clock, record_bytes_max=2_000)
    for topic in (LETTERS, AGAIN):
        small.admin().create_topic(TopicSpec(topic))
    plan = stage.plan(LetterFilter(ids=(id_of(record),)), edit=Edit(b"x" * 3_000))
    run = stage.run(plan, producer=small.producer())
    stage.finish(run)
    ((_, why),) = ReplayBook(stage.database, plan.id).passed_over()
    assert "takes at most 2,000" in why
    stage.carry_out(stage.plan())
    assert [again.value for again in stage.replayed()] == [record.value]


@pytest.mark.parametrize("value", [b"edited", b"", None])
def test_an_edited_letter_sends_the_edit_and_keeps_the_original(stage, value):
    record, other = stage.give_up(1, 2)
    id = id_of(record)
    plan = stage.plan(LetterFilter(ids=(id,)), edit=Edit(value))
    stage.carry_out(plan)
    (again,) = stage.replayed()
    assert again.value == value
    assert original_value(stage.database, plan.id, id) == Edit(record.value)
    assert original_value(stage.database, plan.id, id_of(other)) is None
    entry = stage.ledger.one(id)
    assert (entry.state, entry.value) == ("replaying", record.value)
    assert entry.note == f"Its value was edited for replay {plan.id}, which keeps the original."
    assert envelope_of(again).note == entry.note


def test_an_edit_is_for_one_letter(stage):
    stage.give_up(1, 2)
    with pytest.raises(InvalidRequest, match="for one dead letter, and 2 were meant"):
        stage.plan(edit=Edit(b"edited"))
    assert unfinished_plans(stage.database) == []


def test_a_letter_replayed_five_times_needs_force(stage):
    (record, _) = stage.give_up(1, 2)
    stage.tell(letter(record, at_ms=9_000, replay=(5, "r-5")))
    careful = draft_plan(stage.database, request())
    assert (len(careful.entries), careful.needs_force) == (1, 1)
    forced = stage.plan(force=True)
    assert (len(forced.entries), forced.needs_force) == (2, 0)
    stage.carry_out(forced)
    assert sorted(envelope_of(again).replay_number for again in stage.replayed()) == [1, 6]


def test_a_draft_tells_what_would_be_sent_and_changes_nothing(stage):
    stage.give_up(1, 2, 3)
    draft = draft_plan(stage.database, request(limit=2))
    assert [entry.letter_id for entry in draft.entries] == [id_of(source(n)) for n in (1, 2)]
    assert draft.origins == {(LETTERS, INPUT): 2}
    assert draft.oldest_ms == 5_001
    assert stage.database.read("SELECT * FROM replay_plans") == []
    assert AuditTrail(stage.database).rows() == []


@pytest.mark.parametrize(
    "wrong", [{"wanted": LetterFilter(state="resolved")}, {"actor": " "}, {"limit": 0}]
)
def test_a_request_that_makes_no_sense_plans_nothing(stage, wrong):
    stage.give_up(1)
    with pytest.raises(InvalidRequest, match="Nothing was planned"):
        stage.plan(**wrong)
    assert stage.database.read("SELECT * FROM replay_plans") == []


def test_text_from_a_command_line_that_is_no_text_can_still_be_sent(stage):
    stage.give_up(1)
    stage.carry_out(stage.plan(reason="b\udcff", actor="a\udcff"))
    (entry,) = stage.ledger.find(ALL).items
    assert (entry.state_reason, entry.state_by) == ("b\\udcff", "a\\udcff")


def test_a_record_of_somebody_else_goes_back_under_an_id_of_its_own(stage):
    stage.tell(Record(b"hello", b"k", [("x", b"1"), ("forebay-id", b"forged")], LETTERS))
    stage.carry_out(stage.plan())
    (again,) = stage.replayed()
    (entry,) = stage.ledger.find(ALL).items
    assert (again.value, user_headers(again.headers)) == (b"hello", [("x", b"1")])
    assert (envelope_of(again).id, envelope_of(again).group) == (entry.id, GROUP)
    assert entry.state == "replaying"


def test_every_step_of_a_replay_is_in_the_audit_trail(stage):
    stage.give_up(1, 2)
    plan = stage.plan()
    stage.carry_out(plan)
    stage.carry_out(plan)
    told = [row[1:] for row in AuditTrail(stage.database).rows(target=plan.id)]
    assert told == [
        ("ann", "replay sent", plan.id, "the bank is back", 2),
        ("ann", "replay", plan.id, "the bank is back", 2),
    ]
