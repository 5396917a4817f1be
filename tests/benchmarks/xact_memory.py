"""What the two processes keep in memory at their worst."""

import time
from collections.abc import Iterator

from benchmarks.results import Row, Target
from benchmarks.xact_host import NginxHost
from benchmarks.xact_run import children_of, fresh_place, part_of, peak_mib, stop

SMALL = 3_000
LARGE = 12


class MemoryRows:
    def __init__(self, host: NginxHost) -> None:
        self._host = host

    def rows(self) -> Iterator[Row]:
        yield Row(
            "download_worker_rss_mib",
            "MiB",
            Target(at_most=160),
            self._downloads,
            f"peak of the process of all record stages, 50 downloads at once, {LARGE} files of "
            f"200 MB among {SMALL:,} of 20 KB",
        )

    def _downloads(self) -> tuple[float, dict[str, float]]:
        with fresh_place(self._host) as place:
            producer = place.broker.producer()
            every = SMALL // LARGE
            for number in range(SMALL + LARGE):
                size = "200m" if number % (every + 1) == 0 else "20k"
                producer.send(place.event(number, [self._host.link(size, number)]))
                producer.poll(0)
            while producer.outstanding:
                producer.poll(0.1)
            producer.close()
            process = place.run()
            peaks: dict[str, float] = {}
            deadline = time.monotonic() + 150
            try:
                while time.monotonic() < deadline:
                    time.sleep(0.5)
                    for pid in children_of(process):
                        peaks[part_of(pid)] = max(peak_mib(pid), peaks.get(part_of(pid), 0.0))
                    if len(place.stored_at()) == SMALL + LARGE:
                        break
                else:
                    raise TimeoutError("not all files were stored in 150 s")
            finally:
                stop(process)
        return peaks["records"], {f"{part}_mib": peak for part, peak in peaks.items()}
