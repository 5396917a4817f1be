"""How well handlers that wait fill fifty places: against the sum of their waits over fifty."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Any

from benchmarks.engine_stage import Declared, running, site_on, wait_until
from benchmarks.engine_traffic import Traffic
from benchmarks.engine_worker import measured
from benchmarks.results import Row, Target
from forebay.engine.context import Context

RECORDS = 10_000
SECONDS_MAX = 0.005
AT_ONCE = 50
INCLUDES = (
    f"{RECORDS:,} records of one partition that sleep 0 to 5 ms each, {AT_ONCE} at once; first "
    f"handler's start to last handler's end, over the sum of the sleeps by {AT_ONCE}; unordered "
    "and by key (1,000 keys), of which the worse counts; all else as in the cost rows; bare_ratio: "
    f"{AT_ONCE} threads of nobody's that sleep the same, in the same process"
)


class SleepingRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._topic = ""

    def rows(self) -> Iterator[Row]:
        self._topic = self._traffic.filled(1, RECORDS)
        for kind, most in (("threads", 1.10), ("async", 1.30)):
            yield self._row(kind, most)

    def _row(self, kind: str, most: float) -> Row:
        return Row(
            f"{kind}_sleep_vs_ideal",
            "ratio",
            Target(at_most=most),
            lambda: self._worse(kind),
            INCLUDES,
        )

    def _worse(self, kind: str) -> tuple[float, dict[str, float]]:
        by_order = {order: self._ours(kind, order) for order in ("unordered", "key")}
        figures = {f"{order}_ratio": told["ratio"] for order, told in by_order.items()}
        worse = max(by_order.values(), key=lambda told: told["ratio"])
        told = ("bare_ratio", "ideal_seconds", "seconds", "cpu_us", "handled")
        return worse["ratio"], figures | {name: worse[name] for name in told}

    def _ours(self, kind: str, order: str) -> dict[str, float]:
        return measured(
            "sleeping",
            "ours",
            bootstrap=self._traffic.bootstrap,
            topic=self._topic,
            pipeline=self._traffic.new_name("sleeping"),
            kind=kind,
            order=order,
        )


def ours(bootstrap: str, topic: str, pipeline: str, kind: str, order: str) -> dict[str, float]:
    chance = random.Random(1)
    naps = [chance.uniform(0, SECONDS_MAX) for _ in range(RECORDS)]
    ends: list[float] = []
    starts: list[float] = []
    handler = (_napping if kind == "threads" else _napping_async)(naps, starts, ends)
    declared = Declared(pipeline, topic, handler, 1, order, {"concurrency": AT_ONCE})
    with site_on(bootstrap) as site, running(declared.pipeline(), site) as loop:
        cpu = time.process_time()
        wait_until(lambda: loop.counters.handled >= RECORDS, f"{RECORDS} records")
        handled = loop.counters.handled
        cpu = time.process_time() - cpu
    ideal, seconds = sum(naps) / AT_ONCE, max(ends) - min(starts)
    return {
        "ratio": seconds / ideal,
        "bare_ratio": _bare_seconds(naps) / ideal,
        "ideal_seconds": ideal,
        "seconds": seconds,
        "cpu_us": cpu / RECORDS * 1e6,
        "handled": handled,
    }


def _napping(naps: list[float], starts: list[float], ends: list[float]) -> Callable[..., Any]:
    def nap(payload: bytes, context: Context) -> None:
        starts.append(time.perf_counter())
        time.sleep(naps[context.record.offset])
        ends.append(time.perf_counter())

    return nap


def _napping_async(naps: list[float], starts: list[float], ends: list[float]) -> Callable[..., Any]:
    async def nap(payload: bytes, context: Context) -> None:
        starts.append(time.perf_counter())
        await asyncio.sleep(naps[context.record.offset])
        ends.append(time.perf_counter())

    return nap


def _bare_seconds(naps: list[float]) -> float:
    waiting: SimpleQueue[float] = SimpleQueue()
    for nap in naps:
        waiting.put(nap)

    def work() -> None:
        while True:
            try:
                time.sleep(waiting.get_nowait())
            except Empty:
                return

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started
