"""Ctrl-C as a fact that is looked at, not an exception that may strike between two lines.

An exception could come after a process was started and before anybody took note of it.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    def __init__(self) -> None:
        self._has_come = False

    def note(self, _signal: int, _frame: FrameType | None) -> None:
        self._has_come = True

    def check(self) -> None:
        if self._has_come:
            raise KeyboardInterrupt


@contextmanager
def noted_interruption() -> Iterator[Interruption]:
    interruption = Interruption()
    before = {number: signal.signal(number, interruption.note) for number in _SIGNALS}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
