"""Which records run next: in their lanes' order, in turn between partitions."""

from collections import deque

from forebay.core.lanes import Lane
from forebay.engine.executors import Executor
from forebay.engine.stages import OrderBy
from forebay.engine.work import HeldPartition, Work, WorkLane


class Dispatch:
    """Belongs to the engine thread."""

    def __init__(self, executor: Executor, order_by: OrderBy) -> None:
        self._executor = executor
        self._by_key = order_by == "key"
        self._by_partition = order_by == "partition"
        self._turns: deque[HeldPartition] = deque()
        self.out: dict[WorkLane, None] = {}
        self.stuck: dict[WorkLane, Work] = {}

    @property
    def running(self) -> int:
        return len(self.out)

    @property
    def has_waiting(self) -> bool:
        """Something has not been handed out yet."""
        return any(held.ready for held in self._turns)

    @property
    def begun(self) -> int:
        """Of those handed out: what a worker has taken up."""
        return sum(lane.running is not None for lane in self.out)

    def take(self, work: Work) -> None:
        """Records of one lane wait behind each other; without a key each has a lane of its own."""
        held = work.held
        key = work.record.key if self._by_key else None
        if key is None and not self._by_partition:
            lane: WorkLane = Lane(held)
            lane.waiting.append(work)
            self._is_ready(held, lane)
            return
        known = held.lanes.get(key)
        if known is not None:
            known.waiting.append(work)
            return
        lane = held.lanes[key] = Lane(held, key)
        lane.waiting.append(work)
        self._is_ready(held, lane)

    def hand_out(self, assigned: int) -> None:
        room = self._executor.capacity - len(self.out)
        if room <= 0 or not self._turns:
            return
        lanes: list[WorkLane] = []
        share = self._executor.capacity // max(1, assigned) + 1
        passed_over = 0
        while len(lanes) < room and self._turns:
            held = self._turns.popleft()
            if not held.ready:
                held.is_in_turn = False
                continue
            if held.handed_out >= share and passed_over < len(self._turns):
                passed_over += 1
                self._turns.append(held)
                continue
            passed_over = 0
            lanes.append(self._hand_out_one(held))
        if lanes:
            self._executor.submit(lanes)

    def hand_out_alone(self, work: Work) -> None:
        """In a lane that nothing else joins."""
        lane: WorkLane = Lane(work.held)
        lane.waiting.append(work)
        self.out[lane] = None
        work.held.handed_out += 1
        self._executor.submit([lane])

    def ended(self, lane: WorkLane) -> None:
        """Its worker let go of it: close it, or have it run again."""
        held = lane.holder
        if self.stuck.pop(lane, None) is None and lane in self.out:
            del self.out[lane]
            held.handed_out -= 1
        if lane.waiting and not held.is_fenced:
            self._is_ready(held, lane)
        elif held.lanes.get(lane.key) is lane:
            del held.lanes[lane.key]

    def set_aside(self, lane: WorkLane, work: Work) -> None:
        """Its handler does not return: it stays closed, but takes nobody's place any more."""
        if lane in self.out:
            del self.out[lane]
            lane.holder.handed_out -= 1
        self.stuck[lane] = work
        self._executor.replace_worker()

    def reopen(self, lane: WorkLane) -> None:
        """Give up waiting for its handler: what queued behind it goes on in a lane of its own."""
        held = lane.holder
        del self.stuck[lane]
        if held.lanes.get(lane.key) is lane:
            del held.lanes[lane.key]
        waiting = list(lane.waiting)
        lane.waiting.clear()
        for work in waiting:
            self.take(work)

    def drop(self, held: HeldPartition) -> int:
        """Forget what has not started of a partition; says how many records that were."""
        dropped = 0
        for lane in (*held.ready, *held.lanes.values(), *self._out_of(held)):
            dropped += len(lane.waiting)
            lane.waiting.clear()
        held.ready.clear()
        return dropped

    def runs_for(self, held: HeldPartition) -> bool:
        return held.handed_out > 0

    def _is_ready(self, held: HeldPartition, lane: WorkLane) -> None:
        held.ready.append(lane)
        if not held.is_in_turn:
            held.is_in_turn = True
            self._turns.append(held)

    def _hand_out_one(self, held: HeldPartition) -> WorkLane:
        lane = held.ready.popleft()
        self.out[lane] = None
        held.handed_out += 1
        if held.ready:
            self._turns.append(held)
        else:
            held.is_in_turn = False
        return lane

    def _out_of(self, held: HeldPartition) -> list[WorkLane]:
        return [lane for lane in (*self.out, *self.stuck) if lane.holder is held]
