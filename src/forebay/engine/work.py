"""One delivered record on its way to an outcome, and the partition that holds it."""

from collections import deque
from typing import TypeAlias

from forebay.core.envelope import Envelope
from forebay.core.failures import Failure
from forebay.core.lanes import Lane
from forebay.core.offsets import PartitionProgress
from forebay.core.outcomes import Outcome
from forebay.core.records import Offset, Record, TopicPartition


class Stop:
    """A handler raised what stops the stage; its record stays unresolved."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


Result: TypeAlias = Outcome | Failure | Stop


class HeldPartition:
    """A partition under one assignment. Fenced when it leaves: what comes later counts no more."""

    __slots__ = (
        *("at", "progress", "lanes", "ready", "is_in_turn", "bytes_held", "handed_out"),
        *("is_fenced", "is_paused", "is_at_stop", "moved_at", "settling"),
    )

    def __init__(self, at: TopicPartition, start: Offset, now: float) -> None:
        self.at = at
        self.progress: PartitionProgress[Work] = PartitionProgress(start)
        self.lanes: dict[bytes | None, WorkLane] = {}
        self.ready: deque[WorkLane] = deque()
        self.is_in_turn = False
        self.bytes_held = 0
        self.handed_out = 0
        self.is_fenced = False
        self.is_paused = False
        self.is_at_stop = False
        self.moved_at = now
        self.settling = 0


class Work:
    """The handler's side writes `result`, `outputs` and the times, the engine all else.

    `is_fenced`: an outcome was decided without the handler, whose own comes too late.
    """

    __slots__ = (
        *("record", "held", "size", "envelope", "result", "outputs"),
        *("is_fenced", "started_at", "finished_at"),
    )

    def __init__(self, record: Record, held: HeldPartition, size: int) -> None:
        self.record = record
        self.held = held
        self.size = size
        self.envelope: Envelope | None = None
        self.result: Result | None = None
        self.outputs: list[Record] | None = None
        self.is_fenced = False
        self.started_at = 0.0
        self.finished_at = 0.0

    @property
    def attempt(self) -> int:
        return 1 if self.envelope is None else self.envelope.attempt

    @property
    def took_ms(self) -> float | None:
        """None where no handler was asked."""
        if not self.finished_at:
            return None
        return round((self.finished_at - self.started_at) * 1000, 3)


WorkLane: TypeAlias = Lane[HeldPartition, Work]
