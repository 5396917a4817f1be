"""CPU of a stage that waits: for records, or for its one handler."""

import time
from collections.abc import Iterator

from benchmarks.engine_stage import PARTITIONS, Declared, running, site_on, wait_until
from benchmarks.engine_traffic import Traffic
from benchmarks.engine_worker import measured
from benchmarks.results import Row, Target
from forebay.engine.context import Context

SETTLE_SECONDS = 2.0
SECONDS = 6.0


class IdleRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def rows(self) -> Iterator[Row]:
        yield Row(
            "idle_core_percent",
            "%",
            Target(at_most=0.5),
            lambda: self._ours(records=0),
            f"all CPU of a worker's process with nothing to do for {SECONDS:g} s: the stage's loop "
            "and its client, in a group",
        )
        yield Row(
            "one_running_core_percent",
            "%",
            Target(at_most=2),
            lambda: self._ours(records=1),
            f"the same while one handler waits all {SECONDS:g} s",
        )

    def _ours(self, records: int) -> tuple[float, dict[str, float]]:
        told = measured(
            "idle",
            "ours",
            bootstrap=self._traffic.bootstrap,
            topic=self._traffic.filled(PARTITIONS, records),
            pipeline=self._traffic.new_name("idle"),
            records=records,
        )
        return told.pop("percent"), told


def ours(bootstrap: str, topic: str, pipeline: str, records: int) -> dict[str, float]:
    def wait(payload: bytes, context: Context) -> None:
        time.sleep(SETTLE_SECONDS + SECONDS + 1.0)

    declared = Declared(pipeline, topic, wait)
    with site_on(bootstrap) as site, running(declared.pipeline(), site) as loop:
        wait_until(lambda: loop.left_behind == records, "start")
        time.sleep(SETTLE_SECONDS)
        cpu = time.process_time()
        time.sleep(SECONDS)
        percent = (time.process_time() - cpu) / SECONDS * 100
        return {"percent": percent, "seconds": SECONDS, "running": loop.left_behind}
