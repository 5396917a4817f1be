"""From sending to a handler's start, and from one handler's end to its lane's next start."""

import asyncio
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from confluent_kafka import Consumer

from benchmarks.engine_stage import PARTITIONS, Declared, running, site_on, wait_until
from benchmarks.engine_traffic import KEYS, Traffic, sent_at_ns
from benchmarks.engine_worker import Worker, say_ready
from benchmarks.results import Row, Target
from forebay.engine.context import Context

PER_SECOND = 100
RECORDS = 500
WARM_UP = 50
LANE_PER_SECOND = 1_000
LANE_RECORDS = 4_000
LANE_KEYS = 50
HANDLER_SECONDS = 0.020
IN_LANE_NS = 10_000_000


class LatencyRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def rows(self) -> Iterator[Row]:
        yield self._over_bare_row("latency_p50_ms_over_bare", "threads", "a no-op handler")
        yield self._over_bare_row(
            "latency_p50_ms_over_bare_while_others_run",
            "waiting",
            "handlers that wait 20 ms, so that two are running at any time",
        )
        yield Row(
            "lane_next_p50_ms",
            "ms",
            Target(at_most=0.5),
            self._lane_next,
            f"end of a handler to the start of the next of its key, which had been sent 10 ms or "
            f"more before that end; {LANE_PER_SECOND:,} records/s of {LANE_KEYS} keys by chance, "
            "handlers that wait 20 ms, threads and async, of which the worse counts",
        )

    def _over_bare_row(self, name: str, kind: str, handler: str) -> Row:
        return Row(
            name,
            "ms",
            Target(at_most=1.5),
            lambda: self._over_bare(kind),
            f"sending to handler's start, {PER_SECOND} records/s by chance, {handler}, key order, "
            "commits tracked; bare: sending to the return of poll",
        )

    def _over_bare(self, kind: str) -> tuple[float, dict[str, float]]:
        bare, ours = self._one_way("bare"), self._one_way("ours", kind=kind)
        figures = {
            "ours_p50_ms": ours["p50_ms"],
            "ours_p99_ms": ours["p99_ms"],
            "bare_p50_ms": bare["p50_ms"],
            "bare_p99_ms": bare["p99_ms"],
            "p99_ms_over_bare": ours["p99_ms"] - bare["p99_ms"],
            "records": ours["records"],
        }
        return ours["p50_ms"] - bare["p50_ms"], figures

    def _one_way(self, scenario: str, **arguments: object) -> dict[str, float]:
        return self._fed(scenario, PER_SECOND, WARM_UP + RECORDS, len(KEYS), arguments)

    def _lane_next(self) -> tuple[float, dict[str, float]]:
        told = {
            kind: self._fed("lanes", LANE_PER_SECOND, LANE_RECORDS, LANE_KEYS, {"kind": kind})
            for kind in ("waiting", "waiting_async")
        }
        figures = {
            f"{kind}_{name}": value for kind, one in told.items() for name, value in one.items()
        }
        return max(one["p50_ms"] for one in told.values()), figures

    def _fed(
        self, scenario: str, per_second: float, records: int, keys: int, arguments: dict[str, Any]
    ) -> dict[str, float]:
        """The worker reads what is sent from here meanwhile."""
        topic = self._traffic.topic(PARTITIONS)
        if scenario != "bare":
            arguments = {**arguments, "pipeline": self._traffic.new_name("latency")}
        told = {"bootstrap": self._traffic.bootstrap, "topic": topic, "records": records}
        with Worker("latency", scenario, **told, **arguments) as worker:
            worker.wait_until_ready()
            self._traffic.trickle(topic, per_second=per_second, records=records, keys=keys)
            return worker.result()


class Run(NamedTuple):
    """One handling, in nanoseconds of the monotonic clock."""

    key: bytes | None
    sent: int
    start: int
    end: int


def bare(bootstrap: str, topic: str, records: int) -> dict[str, float]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"bare-{os.getpid()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    say_ready()
    delays: list[float] = []
    while len(delays) < records:
        message = consumer.poll(1.0)
        if message is not None:
            assert message.error() is None
            delays.append((time.monotonic_ns() - sent_at_ns(message.value())) / 1e6)
    consumer.close()
    return _spread(delays[WARM_UP:])


def ours(bootstrap: str, topic: str, records: int, pipeline: str, kind: str) -> dict[str, float]:
    runs = _handled(bootstrap, topic, records, pipeline, kind)
    return _spread([(run.start - run.sent) / 1e6 for run in runs[WARM_UP:]])


def lanes(bootstrap: str, topic: str, records: int, pipeline: str, kind: str) -> dict[str, float]:
    by_key: dict[bytes | None, list[Run]] = defaultdict(list)
    for run in _handled(bootstrap, topic, records, pipeline, kind):
        by_key[run.key].append(run)
    gaps = [
        (after.start - before.end) / 1e6
        for lane in by_key.values()
        for before, after in pairwise(lane)
        if before.end - after.sent >= IN_LANE_NS
    ]
    return _spread(gaps)


def _handled(bootstrap: str, topic: str, records: int, pipeline: str, kind: str) -> list[Run]:
    runs: list[Run] = []
    declared = Declared(pipeline, topic, HANDLERS[kind](runs))
    with site_on(bootstrap) as site, running(declared.pipeline(), site) as loop:
        say_ready()
        wait_until(lambda: loop.counters.handled >= records, f"{records} records")
    return runs


def _at_once(runs: list[Run]) -> Callable[..., Any]:
    def note(payload: bytes, context: Context) -> None:
        now = time.monotonic_ns()
        runs.append(Run(context.key, sent_at_ns(payload), now, now))

    return note


def _waiting(runs: list[Run]) -> Callable[..., Any]:
    def wait(payload: bytes, context: Context) -> None:
        start = time.monotonic_ns()
        time.sleep(HANDLER_SECONDS)
        runs.append(Run(context.key, sent_at_ns(payload), start, time.monotonic_ns()))

    return wait


def _waiting_async(runs: list[Run]) -> Callable[..., Any]:
    async def wait(payload: bytes, context: Context) -> None:
        start = time.monotonic_ns()
        await asyncio.sleep(HANDLER_SECONDS)
        runs.append(Run(context.key, sent_at_ns(payload), start, time.monotonic_ns()))

    return wait


HANDLERS = {"threads": _at_once, "waiting": _waiting, "waiting_async": _waiting_async}


def _spread(milliseconds: list[float]) -> dict[str, float]:
    hundredths = statistics.quantiles(milliseconds, n=100)
    return {"p50_ms": hundredths[49], "p99_ms": hundredths[98], "records": len(milliseconds)}
