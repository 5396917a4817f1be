"""A sink's process dies before any of its calls: no row is lost, and none is stored twice."""

import random
from collections import Counter
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from contracts.sinks.stores import store
from engine.depot import AfterAll, Crash, Depot, ScriptedSink, SteppedSink, row_of
from forebay.core.errors import OutcomeUnknown, Unavailable
from forebay.core.records import Record, TopicPartition
from forebay.engine.doors import LoopOptions

ROWS = ["1", "2", "3", "4", "5", "11", "12", "13", "14"]
BURIED = {b"bad", b"refused"}


class Doom:
    """The process dies before this call of it. Far away, it only counts."""

    def __init__(self, at_call: int = 1_000_000) -> None:
        self.calls = 0
        self._at_call = at_call

    def strike(self) -> None:
        self.calls += 1
        if self.calls == self._at_call:
            raise Crash


class DoomedDoor:
    def __init__(self, doom: Doom, inner: Any) -> None:
        self._doom = doom
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return partial(self._call, found) if callable(found) else found

    def _call(self, method: Any, *arguments: Any, **options: Any) -> Any:
        self._doom.strike()
        return method(*arguments, **options)


def make_row(record: Record) -> Any:
    if record.value == b"refused":
        return {"id": "refused", "amount": object()}
    return row_of(record)


def depot_with_work() -> Depot:
    depot = Depot(partitions=2, make_row=make_row)
    depot.produce(1, 2, "bad", 3, "skip", 4, "refused", 5, partition=0)
    depot.produce(11, 12, "skip", 13, 14, partition=1)
    return depot


def live(depot: Depot, sink: Any, doom: Doom) -> None:
    """One process, until it is idle or dead. The dead one leaves no trace but what is stored."""
    member = SteppedSink(depot, sink, LoopOptions(), door=partial(DoomedDoor, doom))
    try:
        member.run_until_idle()
        member.consumer.close()
    except Crash:
        group = depot.broker._store.group(depot.route.group)
        if member.consumer.inner._member is not None:
            group.leave(member.consumer.inner._member.id)


def check(depot: Depot, rows: list[dict[str, object]]) -> None:
    assert Counter(row["id"] for row in rows) == Counter(ROWS)
    assert set(depot.letters()) == BURIED
    for partition in (0, 1):
        at = TopicPartition("sales", partition)
        assert depot.committed(partition) == depot.broker._store.log(at).end


def scripted(depot: Depot, *answers: Any) -> ScriptedSink:
    sink = ScriptedSink(depot.store)
    sink.refuses = {"refused"}
    sink.answers.extend(answers)
    return sink


def calls_of_a_whole_life(*answers: Any) -> int:
    depot, doom = depot_with_work(), Doom()
    live(depot, scripted(depot, *answers), doom)
    check(depot, depot.store.rows)
    return doom.calls


AWAY, UNKNOWN = Unavailable("The store is away."), AfterAll(OutcomeUnknown("No answer came."))
STORIES = {
    "a store that works": (),
    "a store that is away": (AWAY, AWAY),
    "a store that does not say what it did": (UNKNOWN, AWAY, UNKNOWN),
}


@pytest.mark.parametrize("answers", STORIES.values(), ids=STORIES.keys())
def test_killed_before_any_call_no_row_is_lost_or_stored_twice(answers):
    for call in range(2, calls_of_a_whole_life(*answers) + 1):
        depot = depot_with_work()
        live(depot, scripted(depot, *answers), Doom(call))
        live(depot, scripted(depot, *answers), Doom())
        check(depot, depot.store.rows)


def test_killed_again_and_again_no_row_is_lost_or_stored_twice():
    for calls in range(8, 60):
        depot = depot_with_work()
        for _ in range(4):
            live(depot, scripted(depot), Doom(calls))
        live(depot, scripted(depot), Doom())
        check(depot, depot.store.rows)


@pytest.mark.parametrize("kind", ["sql", "file", "delta", "delta-upsert"])
def test_killed_over_a_real_store_no_row_is_lost_or_stored_twice(kind, tmp_path):
    for call in range(3, calls_of_a_whole_life() + 1, 5):
        depot, real = depot_with_work(), store(kind, tmp_path / str(call))
        for doom in (Doom(call), Doom()):
            with ExitStack() as process:
                live(depot, process.enter_context(real.open()), doom)
        check(depot, real.rows())


SEEDS = 120


def commotion(seed: int) -> None:
    """Members come, go, are expelled and die while the store is slow, away or says nothing."""
    chance = random.Random(seed)
    depot = Depot(partitions=3, make_row=make_row)
    members = [depot.member(scripted(depot), drain_seconds=2.0)]
    sent = 0
    for _ in range(80):
        member = chance.choice(members)
        match chance.randrange(12):
            case 0 if len(members) < 3:
                members.append(depot.member(scripted(depot), drain_seconds=2.0))
            case 1 if len(members) > 1:
                members.remove(member)
                member.consumer.inner.close()
            case 2 if member.consumer.inner._member is not None:
                member.expel()
            case 3:
                member.sink.answers.append(chance.choice([AWAY, UNKNOWN]))
            case 4:
                member.writer.takes_seconds = chance.choice([None, 0.1, 3.0])
            case 5 | 6:
                depot.produce(sent, partition=chance.randrange(3))
                sent += 1
            case _:
                member.step(seconds=chance.choice([0.0, 0.1, 1.0]))
    for _ in range(400):
        for member in members:
            member.writer.takes_seconds = 0.1
            member.step(seconds=0.2)
    assert Counter(depot.stored) == Counter(str(number) for number in range(sent)), seed
    assert all(member.loop.is_idle and member.health.is_well for member in members), seed


@pytest.mark.parametrize("first", range(4))
def test_whatever_comes_and_goes_no_row_is_lost_or_stored_twice(first):
    for seed in range(first, SEEDS, 4):
        commotion(seed)
