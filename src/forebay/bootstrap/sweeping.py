"""Removing what crashes left behind, from the opening of a place until its owner ends."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

from forebay.core.clock import Clock
from forebay.core.errors import ForebayError
from forebay.observability.catalogue import Emit

SWEEP_EVERY_SECONDS = 3_600.0


class Sweeps:
    """Run on the event loop that they were made on."""

    def __init__(self, clock: Clock, emit: Emit) -> None:
        self._clock = clock
        self._emit = emit
        self._event_loop = asyncio.get_running_loop()
        self._sweeping: list[Future[None]] = []
        self._is_over = False

    def begin(self, sweep: Callable[[float], object]) -> None:
        """From any thread: a place is opened wherever it is first used."""
        if not self._is_over:
            sweeping = asyncio.run_coroutine_threadsafe(self._again(sweep), self._event_loop)
            self._sweeping.append(sweeping)

    def end(self) -> None:
        self._is_over = True
        for sweeping in self._sweeping:
            sweeping.cancel()

    async def _again(self, sweep: Callable[[float], object]) -> None:
        while True:
            try:
                await asyncio.to_thread(sweep, self._clock.now())
            except (ForebayError, OSError) as error:
                self._emit("sweep.failed", error_message=str(error))
            await asyncio.sleep(SWEEP_EVERY_SECONDS)
