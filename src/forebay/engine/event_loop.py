"""The one event loop of a process, in a thread of its own, and the executor that runs on it."""

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from forebay.engine.executors import LANE_RECORDS_MAX, Bell, Finished, take_next
from forebay.engine.handling import Handler
from forebay.engine.work import Work, WorkLane

Value = TypeVar("Value")

_LANES_BETWEEN_TURNS = 16


class EventLoop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="forebay-event-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Value], timeout_seconds: float | None) -> Value:
        """From another thread, blocking."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        return future.result(timeout_seconds)

    def close(self, timeout_seconds: float = 1.0) -> None:
        """What does not end in time is left behind: the thread cannot keep the process alive."""
        self.loop.call_soon_threadsafe(self._cancel_all)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout_seconds)
        if not self._thread.is_alive():
            self.loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        pending = asyncio.all_tasks(self.loop)
        if pending:
            self.loop.run_until_complete(asyncio.wait(pending, timeout=0.5))

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()


class AsyncExecutor:
    """Workers are lasting tasks: a task for each record costs more than the record."""

    def __init__(self, handler: Handler, workers: int, event_loop: EventLoop) -> None:
        self._handler = handler
        self._loop = event_loop.loop
        self._inbox: deque[WorkLane] = deque()
        self._parked: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._bell = Bell(lambda: len(self._inbox) > workers // 2)
        self._is_called = False
        self._is_closed = False
        self.capacity = 2 * workers
        self.finished: deque[Finished] = deque()
        self._call(self._start_workers, workers)

    def submit(self, lanes: Sequence[WorkLane]) -> None:
        self._inbox.extend(lanes)
        if lanes and not self._is_called:
            self._is_called = True
            self._call(self._wake)

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds, self.finished)

    def replace_worker(self) -> None:
        self._call(self._start_workers, 1)

    def close(self) -> None:
        self._is_closed = True
        self._call(self._cancel)

    def _call(self, action: Any, *arguments: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(action, *arguments)

    def _start_workers(self, count: int) -> None:
        for _ in range(count):
            task = self._loop.create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _wake(self) -> None:
        """The flag falls first: a lane that comes now calls again."""
        self._is_called = False
        for _ in range(min(len(self._inbox), len(self._parked))):
            worker = self._parked.pop()
            if not worker.done():
                worker.set_result(None)

    def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def _serve(self) -> None:
        """Handlers that never wait would have the loop to themselves; others get a turn."""
        lanes = 0
        while not self._is_closed:
            if not self._inbox:
                await self._park()
                continue
            work = await self._run(self._inbox.popleft())
            if work is not None and work.is_fenced:
                return
            lanes += 1
            if lanes % _LANES_BETWEEN_TURNS == 0:
                await asyncio.sleep(0)

    async def _park(self) -> None:
        wake_up = self._loop.create_future()
        self._parked.append(wake_up)
        await wake_up

    async def _run(self, lane: WorkLane) -> Work | None:
        work = None
        for remaining in range(LANE_RECORDS_MAX - 1, -1, -1):
            work = take_next(lane)
            if work is None:
                self._post(Finished(lane, None, is_end_of_lane=True))
                return None
            lane.running = work
            await self._handler.run_async(work)
            lane.running = None
            is_end = not remaining or not lane.waiting or work.is_fenced
            self._post(Finished(lane, work, is_end))
            if is_end:
                break
        return work

    def _post(self, finished: Finished) -> None:
        if self._is_closed:
            return
        self.finished.append(finished)
        self._bell.tell()
