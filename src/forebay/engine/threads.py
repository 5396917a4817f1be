"""A thread that drives one loop: step, then wait for what the step said."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

from forebay.core.clock import Clock
from forebay.engine.doors import Wait
from forebay.engine.health import StageHealth

HEALTH_SECONDS = 0.2


class Loop(Protocol):
    @property
    def is_over(self) -> bool: ...

    @property
    def left_behind(self) -> int:
        """What was not finished when the loop was over."""
        ...

    def start(self) -> None:
        """Join the group, or read by hand where the loop was told to."""
        ...

    def step(self, now: float) -> Wait: ...

    def rest(self, wait: Wait) -> None: ...

    def stop(self, deadline: float) -> None: ...

    def health(self, now: float) -> StageHealth: ...


class LoopThread:
    """The loop is built, driven and closed in its own thread, which owns its clients.

    `build` registers what must be closed, in the order in which it is opened.
    """

    def __init__(self, name: str, build: Callable[[ExitStack], Loop], clock: Clock) -> None:
        self.name = name
        self.loop: Loop | None = None
        self.health: StageHealth | None = None
        self.failure: BaseException | None = None
        self._build = build
        self._clock = clock
        self._stop_deadline: float | None = None
        self._told_deadline: float | None = None
        self._looked_at = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, deadline: float) -> None:
        """From any thread, and from a signal handler. May be called again with another time."""
        self._stop_deadline = deadline

    def join(self, timeout_seconds: float | None = None) -> bool:
        """True when it has ended."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    @property
    def is_over(self) -> bool:
        return self.failure is not None or (self.loop is not None and self.loop.is_over)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            with ExitStack() as closing:
                self.loop = self._build(closing)
                self.loop.start()
                self._drive(self.loop)
        except BaseException as error:  # noqa: BLE001  the thread's edge; whoever joins it raises it
            self.failure = error

    def _drive(self, loop: Loop) -> None:
        while not loop.is_over:
            self._pass_on_the_stop(loop)
            wait = loop.step(self._clock.monotonic())
            self._look(loop)
            if not loop.is_over:
                loop.rest(wait)
        self._look(loop, at_once=True)

    def _pass_on_the_stop(self, loop: Loop) -> None:
        if self._stop_deadline != self._told_deadline and self._stop_deadline is not None:
            self._told_deadline = self._stop_deadline
            loop.stop(self._stop_deadline)

    def _look(self, loop: Loop, *, at_once: bool = False) -> None:
        now = self._clock.monotonic()
        if at_once or now - self._looked_at >= HEALTH_SECONDS:
            self._looked_at = now
            self.health = loop.health(now)
