"""Which offset may be committed: everything below it has a durable outcome."""

from collections import deque
from typing import Generic, TypeVar

from forebay.core.records import Offset

Item = TypeVar("Item")


class PartitionProgress(Generic[Item]):
    """Delivered offsets of one partition under one assignment, and what is not yet resolved.

    Offsets may have gaps: only what was delivered counts. A new assignment gets a new object, so
    what belongs to an older one can change nothing here.
    """

    __slots__ = (
        *("_delivered", "_next", "_unresolved"),
        *("delivered_twice", "resolved_late", "started_at"),
    )

    def __init__(self, start: Offset) -> None:
        self.started_at = start
        self._next = start
        self._delivered: deque[Offset] = deque()
        self._unresolved: dict[Offset, Item] = {}
        self.delivered_twice = 0
        self.resolved_late = 0

    def deliver(self, offset: Offset, item: Item) -> bool:
        """False for one that was delivered before: it must not be handled again."""
        if offset < self._next:
            self.delivered_twice += 1
            return False
        self._delivered.append(offset)
        self._unresolved[offset] = item
        self._next = offset + 1
        return True

    def resolve(self, offset: Offset) -> bool:
        unresolved = self._unresolved
        if unresolved.pop(offset, None) is None:
            self.resolved_late += 1
            return False
        delivered = self._delivered
        while delivered and delivered[0] not in unresolved:
            delivered.popleft()
        return True

    def reach(self, offset: Offset) -> None:
        """Nothing below `offset` is left to deliver: what lies between is no record."""
        self._next = max(self._next, offset)

    def is_unresolved(self, offset: Offset) -> bool:
        return offset in self._unresolved

    @property
    def watermark(self) -> Offset:
        return self._delivered[0] if self._delivered else self._next

    @property
    def head(self) -> Item | None:
        """What the watermark waits for."""
        return self._unresolved[self._delivered[0]] if self._delivered else None

    @property
    def position(self) -> Offset:
        """One past the last delivered."""
        return self._next

    @property
    def span(self) -> int:
        return self._next - self.watermark

    @property
    def unresolved(self) -> int:
        return len(self._unresolved)

    @property
    def resolved_above(self) -> int:
        """Done, but not committable yet: an older record is still open."""
        return len(self._delivered) - len(self._unresolved)

    @property
    def entries(self) -> int:
        return len(self._delivered) + len(self._unresolved)
