import threading

from forebay.core.errors import Closed


class OwnerThread:
    """The first thread that uses an object owns it; from any other it is a mistake."""

    __slots__ = ("_owner", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._owner: int | None = None

    def check(self) -> None:
        caller = threading.get_ident()
        if self._owner is None:
            self._owner = caller
        elif self._owner != caller:
            raise Closed(
                f"This {self._what} belongs to the thread that used it first. Nothing was done. "
                f"Use one {self._what} per thread."
            )
