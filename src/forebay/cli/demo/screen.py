"""Where the demo is seen: a live picture on a terminal, a line now and then elsewhere."""

import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from forebay.cli.demo.keys import Keys
from forebay.cli.demo.picture import Moment, plain_line

LINE_SECONDS = 2.0


class Screen(Protocol):
    @property
    def every_seconds(self) -> float: ...

    @property
    def is_watched(self) -> bool:
        """By somebody who can press a key."""
        ...

    @property
    def keys(self) -> Keys: ...

    def show(self, moment: Moment) -> None: ...

    def say(self, sentences: Sequence[str]) -> None:
        """What was done since it was last called."""
        ...

    def conclude(self, moment: Moment) -> None: ...


class Lines:
    every_seconds = LINE_SECONDS
    is_watched = False

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.keys = Keys(None)

    def show(self, moment: Moment) -> None:
        self._tell(moment.closing[-1] if moment.closing else plain_line(moment))

    def say(self, sentences: Sequence[str]) -> None:
        for sentence in sentences:
            self._tell(f"          {sentence}")

    def conclude(self, moment: Moment) -> None:
        for line in moment.closing:
            self._tell(line)


def can_be_live() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
