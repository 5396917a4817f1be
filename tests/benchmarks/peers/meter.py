"""CPU that one client spends on each record, its own threads and its client's together."""

import json
import sys
import threading
import time
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True)
class Task:
    """What every peer is told: `run_PEER.py BOOTSTRAP TOPIC GROUP RECORDS`."""

    bootstrap: str
    topic: str
    group: str
    records: int


def task() -> Task:
    bootstrap, topic, group, records = sys.argv[1:5]
    return Task(bootstrap, topic, group, int(records))


class Meter:
    """Called by the handler once a record, from any thread. All peers pay it, the bare loop too."""

    def __init__(self, records: int) -> None:
        self.is_done = threading.Event()
        self._records = records
        self._numbers = count(1)
        self._cpu = self._wall = 0.0
        self._figures: dict[str, float] = {}

    def __call__(self) -> None:
        number = next(self._numbers)
        if number == 1:
            self._cpu, self._wall = time.process_time(), time.perf_counter()
        elif number == self._records:
            cpu, wall = time.process_time() - self._cpu, time.perf_counter() - self._wall
            self._figures = {
                "cpu_us": cpu / (number - 1) * 1e6,
                "wall_us": wall / (number - 1) * 1e6,
                "records": number,
            }
            self.is_done.set()

    def tell(self, **more: float) -> None:
        print(json.dumps(self._figures | more), flush=True)
