"""How many events a second go through the whole pipeline, and how long one of them takes."""

import time
from collections.abc import Iterator
from functools import cache

from benchmarks.results import Row, Target
from benchmarks.xact_host import NginxHost
from benchmarks.xact_run import (
    XactPlace,
    children_of,
    drain,
    fresh_place,
    part_of,
    peak_mib,
    send,
    share,
    stop,
)

BACKLOG = 20_000
LARGE_BACKLOG = 100_000
RATE = 300
STEADY_SECONDS = 30
WARM_SECONDS = 6
PROCESSES = ("--count", "2")
MOST = 0.99
EVERYTHING = (
    "forebay run xact; one 20 KB attachment per event over https from nginx on the "
    "same cores, embedded broker, local folders, every stored file durable, logs at info"
)


class FlowRows:
    def __init__(self, host: NginxHost) -> None:
        self._host = host
        self._backlogs: list[tuple[float, dict[str, float]]] = []
        self._steady = cache(self._measured_steady)
        self._rounds = 0

    def rows(self) -> Iterator[Row]:
        for name, target in (("available_p50_ms", 150), ("available_p95_ms", 500)):
            yield self._steady_row(name, target, "event accepted by the broker → file durable")
        yield self._steady_row("recorded_p95_ms", 2_000, "… → the commit of its row")
        yield Row(
            "events_per_second",
            "1/s",
            Target(at_least=700),
            self._backlog,
            f"{BACKLOG:,} events, two processes for the record stages and one for the tables, "
            f"from the first task until {MOST:.0%} of the rows are committed (the last batch waits "
            f"its 5 s); {EVERYTHING}",
        )
        yield Row(
            "events_per_second_plan",
            "1/s",
            Target(at_least=1_000),
            self._again,
            "the same runs against the plan's NFR-1.2",
        )
        yield Row(
            "backlog_100k_minutes",
            "min",
            Target(at_most=3),
            self._large_backlog,
            f"{LARGE_BACKLOG:,} events, from the start of three processes to the last row; "
            f"{EVERYTHING}",
            runs=1,
        )

    def _steady_row(self, name: str, target: float, what: str) -> Row:
        def measure() -> tuple[float, dict[str, float]]:
            self._rounds += 1
            told = self._steady((self._rounds - 1) % 3)
            return told[name], told

        return Row(
            name,
            "ms",
            Target(at_most=target),
            measure,
            f"{what}, at {RATE} events/s for {STEADY_SECONDS} s; {EVERYTHING}",
        )

    def _backlog(self) -> tuple[float, dict[str, float]]:
        with fresh_place(self._host) as place:
            place.send_backlog(BACKLOG)
            place.run_until_idle(180, *PROCESSES)
            told = _throughput(place, BACKLOG)
        self._backlogs.append((told["events_per_second"], told))
        return self._backlogs[-1]

    def _again(self) -> tuple[float, dict[str, float]]:
        return self._backlogs.pop(0)

    def _large_backlog(self) -> tuple[float, dict[str, float]]:
        with fresh_place(self._host) as place:
            place.send_backlog(LARGE_BACKLOG)
            begun = time.time()
            place.run_until_idle(600, *PROCESSES)
            recorded = place.recorded_at()
            told = {"rows": float(len(recorded))}
            if len(recorded) != LARGE_BACKLOG:
                raise AssertionError(f"{len(recorded)} rows for {LARGE_BACKLOG} events")
            return (max(recorded.values()) - begun) / 60, told

    def _measured_steady(self, _round: int) -> dict[str, float]:
        with fresh_place(self._host) as place:
            process = place.run()
            try:
                time.sleep(WARM_SECONDS)
                _send_steadily(place, RATE * STEADY_SECONDS, RATE)
                time.sleep(8)
                rss = {part_of(pid): peak_mib(pid) for pid in children_of(process)}
            finally:
                stop(process)
            accepted, stored, recorded = (
                place.accepted_at(),
                place.stored_at(),
                place.recorded_at(),
            )
        if len(recorded) != len(accepted):
            raise AssertionError(f"{len(recorded)} rows for {len(accepted)} events")
        available = [(stored[t] - accepted[t]) * 1000 for t in accepted]
        in_table = [(recorded[t] - accepted[t]) * 1000 for t in accepted]
        return {
            "available_p50_ms": share(available, 0.5),
            "available_p95_ms": share(available, 0.95),
            "recorded_p50_ms": share(in_table, 0.5),
            "recorded_p95_ms": share(in_table, 0.95),
            "events": float(len(accepted)),
            **{f"rss_{part}_mib": figure for part, figure in rss.items()},
        }


def _throughput(place: XactPlace, events: int) -> dict[str, float]:
    tasks = [r.timestamp_ms / 1000 for r in place.records(place.topics.downloads_pending)]
    stored, recorded = place.stored_at(), place.recorded_at()
    if not len(stored) == len(recorded) == events:
        raise AssertionError(f"{len(stored)} stored and {len(recorded)} rows of {events} events")
    begun, rows = min(tasks), sorted(recorded.values())
    most = int(MOST * events)
    return {
        "events_per_second": most / (rows[most] - begun),
        "to_the_last_row": events / (rows[-1] - begun),
        "files_per_second": events / (max(stored.values()) - begun),
        "seconds": rows[-1] - begun,
    }


def _send_steadily(place: XactPlace, events: int, rate: float) -> None:
    producer = place.broker.producer()
    begun = time.monotonic()
    for number in range(events):
        wait = begun + number / rate - time.monotonic()
        while wait > 0:
            producer.poll(min(wait, 0.005))
            wait = begun + number / rate - time.monotonic()
        send(producer, place.event(number, [place.host.link("20k", number)]))
    drain(producer, events)
    producer.close()
