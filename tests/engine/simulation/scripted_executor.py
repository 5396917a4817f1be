"""Workers that move only when told, one stop at a time, with a place to stop after everything."""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from forebay.engine.executors import Finished, take_next
from forebay.engine.handling import Handler
from forebay.engine.work import Work, WorkLane
from forebay.testing.clock import FakeClock


class Script(Protocol):
    """What handlers do. `begins` says how long one takes, `ends` comes as it returns."""

    def takes(self, work: Work) -> None: ...

    def begins(self, work: Work) -> float: ...

    def runs(self, work: Work) -> None: ...

    def ends(self, work: Work) -> None: ...

    def finds_nothing(self) -> None: ...


class ScriptedExecutor:
    def __init__(
        self,
        handler: Handler,
        script: Script,
        clock: FakeClock,
        chance: random.Random,
        workers: int,
    ) -> None:
        self._handler = handler
        self._script = script
        self._clock = clock
        self._chance = chance
        self._lane_records_max = chance.choice((1, 2, 3, 64))
        self._queue: deque[WorkLane] = deque()
        self._serving: list[Iterator[float]] = []
        self._asleep_until: dict[Iterator[float], float] = {}
        self.workers = workers
        self.capacity = 2 * workers
        self.finished: deque[Finished] = deque()

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        self._queue.extend(lanes)

    def wait(self, seconds: float) -> None:
        for _ in range(self._chance.randrange(8)):
            if not self.turn():
                break
        if not self.finished:
            self._clock.advance(seconds)

    def replace_worker(self) -> None:
        self.workers += 1

    def close(self) -> None:
        """Nothing is open."""

    def turn(self) -> bool:
        """One worker goes one stop further. False where all sleep or have nothing to do."""
        while self._queue and len(self._serving) < self.workers:
            self._serving.append(self._serve(self._queue.popleft()))
        now = self._clock.monotonic()
        awake = [w for w in self._serving if self._asleep_until.get(w, 0.0) <= now]
        if not awake:
            return False
        worker = self._chance.choice(awake)
        seconds = next(worker, None)
        if seconds is None:
            self._serving.remove(worker)
            self._asleep_until.pop(worker, None)
        elif seconds:
            self._asleep_until[worker] = now + seconds
        return True

    @property
    def is_at_rest(self) -> bool:
        return not self._serving and not self._queue

    def run_all(self) -> None:
        while self.turn():
            pass

    def _serve(self, lane: WorkLane) -> Iterator[float]:
        """`run_lane`, with a stop wherever the engine's thread may come between."""
        yield 0
        for remaining in range(self._lane_records_max - 1, -1, -1):
            work = take_next(lane)
            if work is None:
                self._script.finds_nothing()
                yield 0
                self.finished.append(Finished(lane, None, is_end_of_lane=True))
                return
            self._script.takes(work)
            yield 0
            lane.running = work
            began_at = work.started_at = self._clock.monotonic()
            yield self._script.begins(work)
            self._script.runs(work)
            self._handler.run(work)
            work.started_at = began_at
            yield 0
            self._script.ends(work)
            lane.running = None
            is_end = not remaining or not lane.waiting or work.is_fenced
            yield 0
            self.finished.append(Finished(lane, work, is_end))
            if is_end:
                self.workers -= work.is_fenced
                return
            yield 0
