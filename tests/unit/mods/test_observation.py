"""What is told of a run while it goes on, decided from what its stage says of itself."""

from dataclasses import replace

import pytest

from forebay.engine.health import PartitionHealth, StageHealth
from forebay.mods.kafka_consumer.observation import Observer
from forebay.mods.kafka_consumer.telling import Teller
from forebay.mods.kafka_consumer.validation import configuration_of

HEALTH = StageHealth(
    stage="process",
    group="g",
    kind="record",
    unresolved=0,
    bytes_held=0,
    running=0,
    stuck=0,
    oldest_seconds=0.0,
    next_due_ms=None,
    is_idle=False,
    is_stopping=False,
    reasons=(),
    partitions=(),
    counters={"handled": 0},
)


class Watched:
    def __init__(self, **params) -> None:
        self.said = []
        given = {
            "bootstrap_servers": "localhost:9092",
            "topics": ["orders"],
            "group_id": "g",
            "processor_callable": print,
        }
        configuration = configuration_of(given | params, {})
        tell = Teller(lambda event, **fields: self.said.append((event, fields)), "debug", "m")
        self.observer = Observer(configuration, tell)

    def look(self, now, **changes):
        self.observer.look(replace(HEALTH, **changes), now)

    @property
    def events(self):
        return [event for event, _ in self.said]


def partition(watermark, unresolved, span):
    return (PartitionHealth("orders", 0, watermark, unresolved, span, is_paused=False),)


def test_a_gap_that_is_there_for_a_whole_commit_interval_is_told():
    watched = Watched(commit_interval_seconds=5)
    for now in (0, 5, 10):
        watched.look(now, partitions=partition(watermark=1_000, unresolved=1, span=7))
    ((event, fields),) = watched.said
    assert event == "mod.gap"
    assert (fields["gap_at"], fields["uncommitted_count"]) == (1_000, 6)


def test_a_gap_that_moves_on_is_how_workers_work():
    watched = Watched(commit_interval_seconds=5)
    for now, watermark in ((0, 1_000), (5, 1_010), (10, 1_020)):
        watched.look(now, partitions=partition(watermark, unresolved=1, span=7))
    assert watched.said == []


def test_records_that_wait_in_order_are_no_gap():
    watched = Watched(commit_interval_seconds=5)
    for now in (0, 5, 10):
        watched.look(now, partitions=partition(watermark=1_000, unresolved=7, span=7))
    assert watched.said == []


@pytest.mark.parametrize(("free_at", "times"), [(None, 2), (50, 1)])
def test_a_full_queue_is_told_each_time_its_patience_is_over(free_at, times):
    watched = Watched(queue_size=10, worker_count=2, queue_put_timeout=60)
    for now in (*range(0, 121, 10),):
        watched.look(now, unresolved=0 if now == free_at else 12, running=2)
    assert watched.events == ["mod.backpressure"] * times
    assert watched.said[0][1]["queue_size"] == 10


def test_stuck_workers_are_told_when_they_become_more():
    watched = Watched()
    for now, stuck in ((0, 0), (1, 1), (2, 1), (3, 4), (4, 0)):
        watched.look(now, stuck=stuck)
    assert [fields["stuck"] for _, fields in watched.said] == [1, 4]
    assert watched.observer.stuck_max == 4
