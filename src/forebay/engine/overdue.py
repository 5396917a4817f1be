"""Handlers that do not return: their records go on without them."""

from collections.abc import Callable

from forebay.core.failures import TIMEOUT, Failure
from forebay.engine.counters import Counters
from forebay.engine.dispatch import Dispatch
from forebay.engine.work import Result, Work, WorkLane

LOOK_EVERY_SECONDS = 1.0


class Overdue:
    """Belongs to the engine thread. `limit_seconds` None waits for ever."""

    def __init__(
        self,
        dispatch: Dispatch,
        counters: Counters,
        limit_seconds: float | None,
        settle: Callable[[Work, Result], None],
    ) -> None:
        self._dispatch = dispatch
        self._counters = counters
        self._limit_seconds = limit_seconds
        self._settle = settle
        self._looked_at = 0.0

    def fence(self, now: float) -> list[Work]:
        """Those that were fenced now. Looks once a second at most."""
        limit = self._limit_seconds
        if limit is None or now - self._looked_at < min(LOOK_EVERY_SECONDS, limit / 4):
            return []
        self._looked_at = now
        late = [
            (lane, work)
            for lane in self._dispatch.out
            if (work := lane.running) and work.started_at and now - work.started_at > limit
        ]
        for lane, work in late:
            self._fence_one(lane, work, limit)
        return [work for _, work in late]

    def hopeless(self, now: float) -> list[WorkLane]:
        """Lanes whose handler did not return within its time once more."""
        limit = self._limit_seconds
        if limit is None:
            return []
        stuck = self._dispatch.stuck.items()
        return [lane for lane, work in stuck if now - work.started_at > 2 * limit]

    def _fence_one(self, lane: WorkLane, work: Work, limit: float) -> None:
        """Settled by a stand-in: the handler may yet write into the work it was given."""
        work.is_fenced = True
        self._counters.timed_out += 1
        self._dispatch.set_aside(lane, work)
        if work.held.is_fenced:
            return
        stand_in = Work(work.record, work.held, work.size)
        stand_in.envelope = work.envelope
        stand_in.started_at, stand_in.finished_at = work.started_at, work.started_at + limit
        reason = f"The handler did not return within {limit:g} s."
        self._settle(stand_in, Failure(TIMEOUT, reason, TimeoutError.__name__))
