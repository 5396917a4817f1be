"""Why a run is to end: a signal, the caller's event, or the run itself."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from types import FrameType
from typing import Literal, TypeAlias

from forebay.mods.kafka_consumer.telling import Teller

Reason: TypeAlias = Literal["signal", "requested", "stop_at_offset", "error"]
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class Wish:
    """`signals` are those that came, in their order: the second asks not to wait."""

    stop: Event | None = None
    signals: list[str] = field(default_factory=list)

    @property
    def reason(self) -> Reason | None:
        if self.signals:
            return "signal"
        return "requested" if self.stop is not None and self.stop.is_set() else None

    @property
    def signal(self) -> str | None:
        return self.signals[0] if self.signals else None

    @property
    def is_urgent(self) -> bool:
        return len(self.signals) > 1

    def take_signal(self, number: int, _frame: FrameType | None) -> None:
        self.signals.append(signal.Signals(number).name)


@contextmanager
def listening(wish: Wish, tell: Teller) -> Iterator[None]:
    """Handlers of the caller are put back. Only the main thread of a process may have any."""
    if threading.current_thread() is not threading.main_thread():
        tell("mod.no_signal_handlers")
        yield
        return
    before = {number: signal.signal(number, wish.take_signal) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
