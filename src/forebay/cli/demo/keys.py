"""Single keys from a terminal, without Enter."""

import os
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


class Keys:
    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def pressed(self) -> str:
        """Those since the last call."""
        if self._descriptor is None:
            return ""
        ready, _, _ = select.select([self._descriptor], [], [], 0)
        if not ready:
            return ""
        read = os.read(self._descriptor, 64)
        if not read:
            self._descriptor = None  # the terminal has gone
        return read.decode(errors="ignore").lower()


@contextmanager
def keys_of_terminal() -> Iterator[Keys]:
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield Keys(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
