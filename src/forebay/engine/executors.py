"""Where handlers run: in the engine's thread, on threads, or on the process's event loop."""

import threading
from collections import deque
from collections.abc import Callable, Sequence, Sized
from queue import SimpleQueue
from typing import NamedTuple, Protocol

from forebay.engine.handling import Handler
from forebay.engine.work import Work, WorkLane

LANE_RECORDS_MAX = 64


class Finished(NamedTuple):
    """`work` is None where a lane was cleared before its worker came to it."""

    lane: WorkLane
    work: Work | None
    is_end_of_lane: bool


class Bell:
    """Wakes the one that waits. It is rung only for who said that it sleeps.

    While workers have plenty to do, the engine need not hear of each end: it looks by itself after
    its short wait, and takes many at once.
    """

    def __init__(self, have_plenty: Callable[[], bool] = lambda: False) -> None:
        self._asleep = threading.Lock()
        self._asleep.acquire()
        self._have_plenty = have_plenty
        self.is_awaited = False

    def tell(self) -> None:
        """Something has finished."""
        if self.is_awaited and not self._have_plenty():
            self.ring()

    def ring(self) -> None:
        if self.is_awaited:
            self.is_awaited = False
            try:
                self._asleep.release()
            except RuntimeError:  # somebody rang at the same moment
                return

    def wait(self, seconds: float, finished: Sized) -> None:
        """Not where something has finished already: that is looked at after saying one sleeps."""
        self.is_awaited = True
        if not finished and seconds > 0:
            self._asleep.acquire(timeout=seconds)
        self.is_awaited = False


class Executor(Protocol):
    """`capacity`: lanes that may be handed out at once."""

    @property
    def capacity(self) -> int: ...

    @property
    def finished(self) -> deque[Finished]:
        """Taken from the left by the engine alone."""
        ...

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        """Does not wait. One wake-up for all of them."""
        ...

    def wait(self, seconds: float) -> None:
        """Until something has finished or time is up."""
        ...

    def replace_worker(self) -> None:
        """One of them was fenced and may never return: another takes its place."""
        ...

    def close(self) -> None:
        """What still runs is left behind; it cannot keep the process alive."""
        ...


def run_lane(
    lane: WorkLane, handler: Handler, finished: deque[Finished], bell: Bell
) -> Work | None:
    """The worker's side of a lane, in a thread. Gives the last work it ran."""
    for remaining in range(LANE_RECORDS_MAX - 1, -1, -1):
        work = take_next(lane)
        if work is None:
            finished.append(Finished(lane, None, is_end_of_lane=True))
            bell.ring()
            return None
        lane.running = work
        handler.run(work)
        lane.running = None
        is_end = not remaining or not lane.waiting or work.is_fenced
        finished.append(Finished(lane, work, is_end))
        bell.tell()
        if is_end:
            break
    return work


def take_next(lane: WorkLane) -> Work | None:
    """None where a revocation has cleared the lane meanwhile."""
    try:
        return lane.waiting.popleft()
    except IndexError:
        return None


class InlineExecutor:
    """Runs where it is submitted: for tests and for functions shorter than a thread's wake-up."""

    capacity = 100  # lanes a step: short functions, between two polls

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._bell = Bell()
        self.finished: deque[Finished] = deque()

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        for lane in lanes:
            run_lane(lane, self._handler, self.finished, self._bell)

    def wait(self, seconds: float) -> None:
        """Nothing runs while the engine does: time just passes."""
        self._bell.wait(seconds, self.finished)

    def replace_worker(self) -> None:
        """An inline function is over when the engine looks."""

    def close(self) -> None:
        """Nothing is open."""


class ThreadExecutor:
    def __init__(self, handler: Handler, threads: int, name: str) -> None:
        self._handler = handler
        self._name = name
        self._lanes: SimpleQueue[WorkLane | None] = SimpleQueue()
        self._bell = Bell(lambda: self._lanes.qsize() > threads // 2)
        self._threads = threads
        self.capacity = 2 * threads
        self.finished: deque[Finished] = deque()
        for _ in range(threads):
            self._start_worker()

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        for lane in lanes:
            self._lanes.put(lane)

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds, self.finished)

    def replace_worker(self) -> None:
        self._start_worker()

    def close(self) -> None:
        for _ in range(self._threads):
            self._lanes.put(None)

    def _start_worker(self) -> None:
        threading.Thread(target=self._serve, name=f"{self._name}-handler", daemon=True).start()

    def _serve(self) -> None:
        """A worker that was fenced has a successor and ends."""
        while (lane := self._lanes.get()) is not None:
            work = run_lane(lane, self._handler, self.finished, self._bell)
            if work is not None and work.is_fenced:
                return
