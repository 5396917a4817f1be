"""Where a sink's commits run: one after the other, beside the loop that reads on meanwhile."""

import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from forebay.core.errors import ForebayError
from forebay.core.records import Offset
from forebay.core.sinks import Sink, SourcePartition
from forebay.engine.executors import Bell


@dataclass(frozen=True, slots=True)
class Flush:
    """`is_repeat`: an earlier try may have been stored, so the position is looked at first."""

    rows: Sequence[Any]
    next_offsets: Mapping[SourcePartition, Offset]
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Flushed:
    flush: Flush
    error: ForebayError | None


class TurnTaking:
    """A sink that a loop asks for positions while its writer stores: one at a time."""

    def __init__(self, sink: Sink[Any]) -> None:
        self._sink = sink
        self._turn = threading.Lock()

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        with self._turn:
            return self._sink.position(partitions)

    def commit(self, rows: Sequence[Any], next_offsets: Mapping[SourcePartition, Offset]) -> None:
        with self._turn:
            self._sink.commit(rows, next_offsets)

    def close(self) -> None:
        self._sink.close()


class SinkWriter(Protocol):
    """Takes one flush at a time."""

    @property
    def finished(self) -> deque[Flushed]: ...

    def submit(self, flush: Flush) -> None: ...

    def wait(self, seconds: float) -> None: ...

    def close(self) -> None: ...


def carry_out(sink: Sink[Any], flush: Flush) -> Flushed:
    try:
        if not (flush.is_repeat and _is_stored(sink, flush)):
            sink.commit(flush.rows, flush.next_offsets)
    except ForebayError as error:
        return Flushed(flush, error)
    return Flushed(flush, None)


def _is_stored(sink: Sink[Any], flush: Flush) -> bool:
    stored = sink.position(flush.next_offsets.keys())
    return all(
        (found := stored.get(source)) is not None and found >= offset
        for source, offset in flush.next_offsets.items()
    )


class InlineSinkWriter:
    """Commits where it is asked to."""

    def __init__(self, sink: Sink[Any]) -> None:
        self._sink = sink
        self._bell = Bell()
        self.finished: deque[Flushed] = deque()

    def submit(self, flush: Flush) -> None:
        self.finished.append(carry_out(self._sink, flush))

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds, self.finished)

    def close(self) -> None:
        """Nothing is open."""


class ThreadSinkWriter:
    def __init__(self, sink: Sink[Any], name: str) -> None:
        self._sink = sink
        self._flushes: SimpleQueue[Flush | None] = SimpleQueue()
        self._bell = Bell()
        self.finished: deque[Flushed] = deque()
        threading.Thread(target=self._serve, name=f"{name}-writer", daemon=True).start()

    def submit(self, flush: Flush) -> None:
        self._flushes.put(flush)

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds, self.finished)

    def close(self) -> None:
        self._flushes.put(None)

    def _serve(self) -> None:
        while (flush := self._flushes.get()) is not None:
            self.finished.append(carry_out(self._sink, flush))
            self._bell.ring()
