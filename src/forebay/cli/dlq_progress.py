"""Says how far something long is: a bar on a terminal, a line every few seconds elsewhere."""

import sys
import time
from contextlib import ExitStack
from typing import Any

from forebay.cli.output import remark

FIRST_SECONDS = 1.0
LINE_SECONDS = 5.0
LOOK_SECONDS = 0.25


class LongWork(ExitStack):
    """Nothing is shown of what ends within a second."""

    def __init__(self, what: str, total: int) -> None:
        super().__init__()
        self._what = what
        self._total = total
        self._bar: Any = None
        self._due = time.monotonic() + FIRST_SECONDS
        self._trouble = ""

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def show(self, done: int, trouble: str = "") -> None:
        if trouble and trouble != self._trouble:
            remark(trouble)
        self._trouble = trouble
        if sys.stderr.isatty():
            self._draw(done)
            self._due = time.monotonic() + LOOK_SECONDS
        else:
            remark(f"{done:,} of {self._total:,} {self._what}")
            self._due = time.monotonic() + LINE_SECONDS

    def _draw(self, done: int) -> None:
        from rich.console import Console  # noqa: PLC0415  who is quick, or a pipe, needs no rich
        from rich.progress import Progress  # noqa: PLC0415  the same

        if self._bar is None:
            bar = Progress(console=Console(stderr=True), transient=True)
            self._bar = self.enter_context(bar)
            self._bar.add_task(self._what, total=self._total)
        self._bar.update(self._bar.task_ids[0], completed=done, refresh=True)
