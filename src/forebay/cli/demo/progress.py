"""What the demo shows while it goes, and how it is said a line a second."""

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from forebay.cli.demo.crew import Crew
from forebay.cli.output import shown

_WINDOW = 6


class Moment(NamedTuple):
    at: float
    produced: int
    handled: int


class Rates:
    """Records a second over the last moments."""

    def __init__(self) -> None:
        self._moments: deque[Moment] = deque(maxlen=_WINDOW)

    def add(self, moment: Moment) -> None:
        self._moments.append(moment)

    @property
    def produced(self) -> int:
        return self._rate(lambda moment: moment.produced)

    @property
    def handled(self) -> int:
        return self._rate(lambda moment: moment.handled)

    def _rate(self, count: Callable[[Moment], int]) -> int:
        if len(self._moments) < 2:
            return 0
        first, last = self._moments[0], self._moments[-1]
        return round((count(last) - count(first)) / max(last.at - first.at, 1e-9))


class Progress:
    """Looks at most every so often; `lag` asks the broker."""

    def __init__(self, crew: Crew, lag: Callable[[], int | None], every_seconds: float) -> None:
        self.crew = crew
        self._lag = lag
        self._every_seconds = every_seconds
        self._rates = Rates()
        self._due = 0.0

    def is_due(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + self._every_seconds
        self._rates.add(Moment(now, self.crew.produced, self.crew.handled))
        return True

    def headline(self) -> str:
        crew, rates = self.crew, self._rates
        return (
            f"produced {shown(crew.produced)} ({shown(rates.produced)}/s) · "
            f"consumed {shown(crew.handled)} ({shown(rates.handled)}/s) · lag {shown(self._lag())}"
        )

    def rows(self) -> list[tuple[str, int, str, int]]:
        produced = [
            (member.orders.name, member.pid, "", len(member.ledger.produced))
            for member in self.crew.producers
        ]
        consumed = [
            (
                f"{member.orders.name} (killed)"
                if member is self.crew.killed
                else member.orders.name,
                member.pid,
                shown(sorted(member.ledger.owned)),
                len(member.ledger.handled),
            )
            for member in self.crew.consumers
        ]
        return produced + consumed


class Lines:
    """For who reads a pipe."""

    def __init__(self, progress: Progress, say: Callable[[str], None]) -> None:
        self._progress = progress
        self._say = say

    def look(self, last_event: str) -> None:
        if self._progress.is_due():
            self.draw(last_event)

    def draw(self, last_event: str) -> None:
        self._say(f" {self._progress.headline()} · {last_event}")
