"""How fast each step went over the last seconds, from counters that begin anew with a process."""

from collections import deque
from collections.abc import Iterable, Sequence

from forebay.engine.health import StageHealth

STEPS = {
    "event-ingester": "ingest",
    "download": "download",
    "upload": "upload",
    "result-processor": "record",
}
BARS = 7
_LEVELS = "▁▂▃▄▅▆▇"


class Pace:
    """Looked at once a second."""

    def __init__(self) -> None:
        self._counted: dict[tuple[int, str], int] = {}
        self._seconds = {step: deque([0] * BARS, BARS) for step in STEPS.values()}
        self._most = dict.fromkeys(STEPS.values(), 1)
        self.moved = 0

    def look(self, processes: Iterable[tuple[int, Sequence[StageHealth]]], seconds: float) -> None:
        done = dict.fromkeys(STEPS.values(), 0)
        for pid, healths in processes:
            for health in healths:
                if health.stage in STEPS:
                    done[STEPS[health.stage]] += self._since(pid, health)
        self.moved = sum(done.values())
        for step, count in done.items():
            rate = round(count / seconds)
            self._seconds[step].append(rate)
            self._most[step] = max(rate, self._most[step])

    def bars(self, step: str) -> str:
        """The tallest is the most this step ever did."""
        most = self._most[step]
        return "".join(_LEVELS[-(-rate * (len(_LEVELS) - 1) // most)] for rate in self._at(step))

    @property
    def events_per_second(self) -> int:
        """Over the last three."""
        return round(sum(self._at("ingest")[-3:]) / 3)

    def _at(self, step: str) -> list[int]:
        return list(self._seconds[step])

    def _since(self, pid: int, health: StageHealth) -> int:
        name = "delivered" if health.kind == "sink" else "handled"
        count = int(str(health.counters[name]))
        before = self._counted.get((pid, health.stage), 0)
        self._counted[pid, health.stage] = count
        return count - before
