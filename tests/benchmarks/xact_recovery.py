"""Everything is killed under load and started again: how long until the next row is there."""

import os
import signal
import time
from collections.abc import Iterator

from benchmarks.results import Row, Target
from benchmarks.xact_host import NginxHost
from benchmarks.xact_run import XactPlace, children_of, fresh_place, stop
from forebay.broker.kafka.trial import TrialCluster

EVENTS = 12_000
WARM_SECONDS = 60.0
WITHIN_SECONDS = 120.0


class RecoveryRows:
    def __init__(self, host: NginxHost) -> None:
        self._host = host

    def rows(self) -> Iterator[Row]:
        yield Row(
            "recovery_s",
            "s",
            Target(at_most=30),
            self._recovery,
            f"SIGKILL of every process while {EVENTS:,} events are handled; from the start again "
            "to the first new commit of a row, the worse of embedded and Kafka",
            runs=1,
        )

    def _recovery(self) -> tuple[float, dict[str, float]]:
        with fresh_place(self._host) as place:
            embedded = _killed_and_back(place)
        with (
            TrialCluster() as cluster,
            fresh_place(self._host, broker_url=f"kafka://{cluster.bootstrap}") as place,
        ):
            kafka = _killed_and_back(place)
        return max(embedded, kafka), {"embedded_s": embedded, "kafka_s": kafka}


def _killed_and_back(place: XactPlace) -> float:
    place.send_backlog(EVENTS)
    process = place.run()
    _await_rows(place, 500, WARM_SECONDS)
    for pid in [process.pid, *children_of(process)]:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    before = len(place.recorded_at())
    begun = time.time()
    process = place.run()
    try:
        _await_rows(place, before + 1, WITHIN_SECONDS)
        recorded = place.recorded_at()
    finally:
        stop(process)
    return min(at for at in recorded.values() if at > begun) - begun


def _await_rows(place: XactPlace, rows: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while len(place.recorded_at()) < rows:
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {rows} rows within {seconds:g} s")
        time.sleep(0.3)
