from collections import Counter
from collections.abc import Callable


class RecordingProbe:
    """Counts the points that were hit; runs a fault planted at one of them."""

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self._faults: dict[str, Callable[[], None]] = {}

    def hit(self, point: str) -> None:
        self.hits[point] += 1
        if fault := self._faults.get(point):
            fault()

    def plant(self, point: str, fault: Callable[[], None]) -> None:
        self._faults[point] = fault

    def clear(self, point: str) -> None:
        self._faults.pop(point, None)
