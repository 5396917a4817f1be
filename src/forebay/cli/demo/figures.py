"""What is measured while the demo goes: shares of latencies, and memory by process."""

from bisect import insort
from collections.abc import Mapping, Sequence
from pathlib import Path


class Latencies:
    """In milliseconds, kept sorted."""

    def __init__(self) -> None:
        self._sorted: list[int] = []

    def add(self, milliseconds: float) -> None:
        insort(self._sorted, max(0, round(milliseconds)))

    def share(self, percent: int) -> int | None:
        return percentile(self._sorted, percent)


def percentile(ascending: Sequence[int], percent: int) -> int | None:
    """The smallest value that so many percent do not exceed."""
    if not ascending:
        return None
    rank = -(-len(ascending) * percent // 100)
    return ascending[max(0, rank - 1)]


class Peaks:
    """The most memory that each process ever had; one that died counts as last seen."""

    def __init__(self) -> None:
        self._peak_kb: dict[str, int] = {}

    def look(self, processes: Mapping[str, int]) -> None:
        for name, pid in processes.items():
            self._peak_kb[name] = max(peak_kb(pid), self._peak_kb.get(name, 0))

    def as_object(self) -> dict[str, int]:
        return {name: round(kb / 1024) for name, kb in self._peak_kb.items()}


def peak_kb(pid: int) -> int:
    """0 where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    lines = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(next(lines, "VmHWM: 0 kB").split()[1])
