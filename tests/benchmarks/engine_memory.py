"""What one record that never ends makes a stage keep, while a million others go by."""

import threading
from collections.abc import Iterator

from benchmarks.engine_stage import Declared, running, site_on, wait_until
from benchmarks.engine_traffic import Traffic
from benchmarks.engine_worker import measured
from benchmarks.kafka_worker import memory_mib
from benchmarks.results import Row, Target
from forebay.engine.context import Context
from forebay.engine.loop import StageLoop

BEHIND = 1_000_000
OTHER_PARTITIONS = 3
OTHERS = 1_000_000
BEFORE_FULL = 150_000


class MemoryRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._topic = ""

    def rows(self) -> Iterator[Row]:
        yield Row(
            "stuck_head_rss_mib",
            "MiB",
            Target(at_most=16),
            self._growth,
            f"most memory of the worker's process less what it had when the window was full, over "
            f"{OTHERS:,} records of {OTHER_PARTITIONS} other partitions handled meanwhile; "
            f"{BEHIND:,} records lie behind the stuck one; entries and bytes held are the most of "
            "all partitions together",
        )

    def _growth(self) -> tuple[float, dict[str, float]]:
        if not self._topic:
            self._topic = self._filled()
        told = measured(
            "memory",
            "ours",
            bootstrap=self._traffic.bootstrap,
            topic=self._topic,
            pipeline=self._traffic.new_name("memory"),
        )
        return told["most_mib"] - told["full_mib"], told

    def _filled(self) -> str:
        topic = self._traffic.topic(1 + OTHER_PARTITIONS)
        self._traffic.fill(topic, 1 + BEHIND, partition=0)
        others = OTHERS + BEFORE_FULL
        for partition in range(1, 1 + OTHER_PARTITIONS):
            self._traffic.fill(topic, others // OTHER_PARTITIONS, partition=partition)
        return topic


def ours(bootstrap: str, topic: str, pipeline: str) -> dict[str, float]:
    end = threading.Event()

    def stick(payload: bytes, context: Context) -> None:
        if context.record.offset == 0 and context.record.partition == 0:
            end.wait()

    declared = Declared(pipeline, topic, stick, 1 + OTHER_PARTITIONS)
    with site_on(bootstrap) as site, running(declared.pipeline(), site) as loop:
        stuck = loop.held.by_place[topic, 0]
        wait_until(lambda: stuck.is_paused, "full window")
        watch = _Watch(loop)
        before = loop.counters.handled
        wait_until(lambda: watch.look() >= before + OTHERS, "others")
        figures = watch.figures()
        assert stuck.progress.watermark == 0
        end.set()
        return figures | {"handled_meanwhile": loop.counters.handled - before}


class _Watch:
    def __init__(self, loop: StageLoop) -> None:
        self._loop = loop
        self._full_mib = self._most_mib = memory_mib()
        self._most_entries = self._most_bytes = 0

    def look(self) -> int:
        """Says how many were handled."""
        held = self._loop.held
        self._most_mib = max(self._most_mib, memory_mib())
        self._most_entries = max(self._most_entries, sum(one.progress.entries for one in held))
        self._most_bytes = max(self._most_bytes, held.bytes)
        return self._loop.counters.handled

    def figures(self) -> dict[str, float]:
        return {
            "full_mib": self._full_mib,
            "most_mib": self._most_mib,
            "most_entries": self._most_entries,
            "most_bytes_held": self._most_bytes,
        }
