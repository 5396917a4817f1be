"""A replay whose process dies: the next one goes on, and exactly the plan was replayed."""

from contextlib import contextmanager, suppress

import pytest

from forebay.core.markers import Marker, mark
from forebay.engine.replay import ReplayRun
from forebay.engine.replay_plans import Plan, load_plan, unfinished_plans
from unit.engine.letters_told import GROUP, LETTERS, id_of
from unit.engine.replay_stage import NOW, NOW_MS, Stage, envelope_of


class Killed(BaseException):
    """As a process dies: nothing below catches it."""


class Fate:
    """Counts what is done outside the process, and ends it before or after one of those."""

    def __init__(self, at: int, *, after: bool) -> None:
        self._left = at
        self._after = after

    @contextmanager
    def meet(self):
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed
        yield
        if self._left == 0:
            raise Killed


class MortalProducer:
    def __init__(self, producer, fate: Fate) -> None:
        self._producer, self._fate = producer, fate

    def send(self, record, token=None) -> None:
        with self._fate.meet():
            self._producer.send(record, token)

    def poll(self, timeout_seconds):
        with self._fate.meet():
            return self._producer.poll(timeout_seconds)


class MortalDatabase:
    def __init__(self, database, fate: Fate) -> None:
        self._database, self._fate = database, fate

    def read(self, sql, values=()):
        return self._database.read(sql, values)

    @contextmanager
    def transaction(self):
        with self._fate.meet(), self._database.transaction() as transaction:
            yield transaction


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fold_between", [False, True])
def test_killed_at_any_moment_and_run_again_exactly_the_plan_was_replayed(
    tmp_path, after, fold_between
):
    """`at` runs through every send, poll and transaction of a whole replay."""
    for at in range(1, 1_000):
        folder = tmp_path / str(at)
        folder.mkdir()
        stage = Stage(folder)
        stage.give_up(*range(4))
        plan = stage.plan()
        (late,) = stage.give_up(9)
        fate = Fate(at, after=after)
        was_killed = True
        with suppress(Killed):
            run_until_killed(stage, plan, fate)
            was_killed = False
        settled = acknowledged(stage, plan)
        before = stage.replayed_ids()
        if fold_between:
            stage.fold()
        run = stage.carry_out(load_plan(stage.database, plan.id))
        check_all_was_replayed(stage, plan, run)
        assert {id: stage.replayed_ids()[id] for id in settled} == {
            id: before[id] for id in settled
        }
        assert id_of(late) not in stage.replayed_ids()
        stage.database.close()
        if not was_killed:
            break
    assert not was_killed
    assert at > 20


def run_until_killed(stage: Stage, plan: Plan, fate: Fate) -> None:
    producer = MortalProducer(stage.broker.producer(), fate)
    run = stage.run(plan, producer, MortalDatabase(stage.database, fate), rate=2)
    stage.finish(run)


def acknowledged(stage: Stage, plan: Plan) -> list[str]:
    rows = stage.database.read(
        "SELECT letter_id FROM replay_entries "
        "WHERE plan_id = ? AND status IN ('published', 'sent')",
        (plan.id,),
    )
    return [str(id) for (id,) in rows]


def check_all_was_replayed(stage: Stage, plan: Plan, run: ReplayRun) -> None:
    ids = {entry.letter_id for entry in plan.entries}
    assert run.progress.sent == len(ids) == 4
    assert stage.replayed_ids().keys() == ids
    assert max(stage.replayed_ids().values()) <= 2
    numbers = {(envelope_of(r).replay_number, envelope_of(r).replay_id) for r in stage.replayed()}
    assert numbers == {(1, plan.id)}
    for id in ids:
        assert stage.ledger.one(id).state == "replaying"
        told = [telling.kind for telling in stage.ledger.story(id)]
        assert told == ["dead_lettered", "replaying"]
    assert unfinished_plans(stage.database) == []


def test_a_handler_that_was_faster_than_the_crashed_replay_is_not_given_its_record_again(
    tmp_path,
):
    stage = Stage(tmp_path)
    (record,) = stage.give_up(1)
    plan = stage.plan()
    stage.run(plan).step(NOW)  # sent, the report not yet read
    resolved = Marker(id_of(record), GROUP, "resolved", 1, plan.id, NOW_MS, GROUP, "")
    stage.tell(mark(resolved, LETTERS, record.key))
    run = stage.carry_out(load_plan(stage.database, plan.id))
    assert (run.progress.sent, len(stage.replayed())) == (1, 1)
    assert stage.ledger.one(id_of(record)).state == "resolved"
    stage.database.close()
