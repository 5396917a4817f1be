"""What was read of one tier partition and is not yet on its way back."""

from collections import deque
from dataclasses import dataclass

from forebay.core.envelope import Envelope
from forebay.core.records import Record
from forebay.engine.routes import Tier
from forebay.engine.work import HeldPartition, Work

RECORDS_MAX = 1_000
BYTES_MAX = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Waiting:
    """One retry: what it becomes and when. `envelope` is what is known of it."""

    work: Work
    record: Record
    envelope: Envelope
    due_ms: int


class TierQueue:
    """In the order of the tier, also of what was refused and waits again."""

    def __init__(self, held: HeldPartition, tier: Tier) -> None:
        self.held = held
        self.tier = tier
        self.trickled_at = 0.0
        self._waiting: deque[Waiting] = deque()
        self._is_in_order = True

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)

    def put_back(self, waiting: Waiting) -> None:
        self._waiting.appendleft(waiting)
        self._is_in_order = False

    @property
    def head(self) -> Waiting | None:
        if not self._is_in_order:
            in_order = sorted(self._waiting, key=lambda waiting: waiting.work.record.offset)
            self._waiting = deque(in_order)
            self._is_in_order = True
        return self._waiting[0] if self._waiting else None

    def take_head(self) -> Waiting:
        return self._waiting.popleft()

    @property
    def sent(self) -> int:
        """Records whose reports are still to come."""
        return self.held.progress.unresolved - len(self._waiting)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= RECORDS_MAX or self.held.bytes_held >= BYTES_MAX

    @property
    def has_room(self) -> bool:
        half = len(self._waiting) <= RECORDS_MAX // 2
        return half and self.held.bytes_held <= BYTES_MAX // 2
