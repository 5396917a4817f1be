"""Where a sink's commits run: one after the other, beside the loop that reads on meanwhile."""

import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from forebay.core.errors import Closed, Fenced, ForebayError, Unavailable
from forebay.core.failures import reason_of
from forebay.core.records import Offset
from forebay.core.sinks import Sink, SourcePartition
from forebay.engine.executors import Bell


@dataclass(frozen=True, slots=True)
class Flush:
    """`is_repeat`: an earlier try may have been stored, so the position is looked at first.

    `stands_at`: where the store is believed to stand.
    """

    rows: Sequence[Any]
    next_offsets: Mapping[SourcePartition, Offset]
    stands_at: Mapping[SourcePartition, Offset | None]
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
        self._is_closed = False

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        with self._its_turn():
            return self._sink.position(partitions)

    def commit(self, rows: Sequence[Any], next_offsets: Mapping[SourcePartition, Offset]) -> None:
        with self._its_turn():
            self._sink.commit(rows, next_offsets)

    def close(self) -> None:
        """Waits for a commit that runs: the file under it must not become another's."""
        with self._turn:
            self._is_closed = True
            self._sink.close()

    @contextmanager
    def _its_turn(self) -> Iterator[None]:
        with self._turn:
            if self._is_closed:
                raise Closed("This sink was closed by its owner. Nothing was stored.")
            yield


class SinkWriter(Protocol):
    """Takes one flush at a time."""

    @property
    def finished(self) -> deque[Flushed]: ...

    def submit(self, flush: Flush) -> None: ...

    def wait(self, seconds: float) -> None: ...

    def close(self) -> None: ...


def carry_out(sink: Sink[Any], flush: Flush) -> Flushed:
    """Always has an answer: without one the stage would wait for ever, and say nothing."""
    try:
        if not (flush.is_repeat and _is_stored(sink, flush)):
            sink.commit(flush.rows, flush.next_offsets)
    except ForebayError as error:
        return Flushed(flush, error)
    except Exception as error:  # noqa: BLE001  the writer's edge; the sink is anybody's code
        return Flushed(flush, _unforeseen(error))
    return Flushed(flush, None)


def _unforeseen(error: Exception) -> Unavailable:
    return Unavailable(
        f"The sink failed in a way that it does not foresee ({reason_of(error)}). Its rows are "
        f"held and tried again, the position is looked at first. Look at the store, or at the "
        f"sink's code."
    )


def _is_stored(sink: Sink[Any], flush: Flush) -> bool:
    """Raises Fenced where the store stands elsewhere than before this batch or after it.

    Having told us its position, it would take the batch, and double the rows below it.
    """
    stored = sink.position(flush.next_offsets.keys())
    if all((stored.get(source) or 0) >= at for source, at in flush.next_offsets.items()):
        return True
    for source in flush.next_offsets:
        if stored.get(source) != flush.stands_at.get(source):
            raise Fenced(
                f"{source.topic}[{source.partition}] was stored up to {stored.get(source) or 0} "
                f"by another writer. Nothing of this batch was stored. It goes on from there; make "
                f"sure that only one process writes here."
            )
    return False


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
