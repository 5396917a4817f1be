import threading
from collections.abc import Iterator
from contextlib import contextmanager

from forebay.core.errors import Closed


class Ownership:
    """A client belongs to the first thread that uses it; only a signal may ask it to close."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._owner: int | None = None
        self._busy = False
        self.closing = False
        self.closed = False

    def claim(self) -> None:
        me = threading.get_ident()
        if self._owner is None:
            self._owner = me
        if self._owner != me:
            raise Closed(
                f"This {self._what} belongs to the thread that used it first. Use it there, or "
                f"make another one for this thread."
            )
        if self.closed:
            raise self.is_closed()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Around calls that a signal handler may interrupt and then ask to close."""
        self.claim()
        before, self._busy = self._busy, True
        try:
            yield
        finally:
            self._busy = before

    def may_close_now(self) -> bool:
        """False from another thread, or from a signal handler amid a call: that call ends soon."""
        self.closing = True
        if self._owner is None:
            return True
        return self._owner == threading.get_ident() and not self._busy

    def is_closed(self) -> Closed:
        return Closed(f"This {self._what} is closed. Make a new one.")
