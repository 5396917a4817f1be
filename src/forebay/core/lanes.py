"""Records that must be handled one after another. A worker owns a lane while it runs."""

from collections import deque
from typing import Generic, TypeVar

Holder = TypeVar("Holder")
Item = TypeVar("Item")


class Lane(Generic[Holder, Item]):
    """The engine appends, the worker that was handed the lane takes from the left.

    Only the engine closes a lane or hands it out again. A worker reads once whether the lane is
    empty, says so, and touches it no more: read twice, two workers could own it.
    """

    __slots__ = ("holder", "key", "running", "waiting")

    def __init__(self, holder: Holder, key: bytes | None = None) -> None:
        self.holder = holder
        self.key = key
        self.waiting: deque[Item] = deque()
        self.running: Item | None = None
