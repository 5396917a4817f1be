"""Every polled record as a row of a CSV file: a safety net, never in the way of the work.

What cannot be written is tried again every few seconds, and held meanwhile as far as the queue
goes. What does not fit is dropped and counted; who would rather wait asks for room before.
"""

from dataclasses import dataclass
from pathlib import Path
from threading import Condition, Thread

from forebay.core.clock import Clock
from forebay.core.errors import ForebayError
from forebay.core.records import Record
from forebay.engine.csv_values import as_lines
from forebay.mods.kafka_consumer.backup_file import BackupFile
from forebay.mods.kafka_consumer.backup_rows import Polled, rows_of
from forebay.observability.catalogue import Emit

CLOSE_SECONDS = 5.0
_HELD_BYTES = 500  # what a small record and its place in the queue take in memory


@dataclass(frozen=True, slots=True)
class BackupSettings:
    path: Path
    batch_size: int = 1_000
    flush_seconds: float = 5.0
    queue_bytes_max: int = 32 * 2**20


class CsvBackup:
    """`offer` may be called from any thread; a thread of its own writes. Nothing here raises."""

    def __init__(self, settings: BackupSettings, clock: Clock, emit: Emit) -> None:
        self.backed_up = 0
        self.dropped = 0
        self._settings = settings
        self._clock = clock
        self._emit = emit
        self._file = BackupFile(settings.path)
        self._changed = Condition()
        self._waiting: list[Polled] = []
        self._bytes = 0
        self._offered = 0
        self._is_dropping = self._is_closing = self._is_over = False
        self._trouble = ""
        self._thread = Thread(target=self._write_on, name="backup-csv", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why rows cannot be written now, in a sentence."""
        return self._trouble

    def has_room_for(self, record: Record) -> bool:
        """An offer would not drop it."""
        with self._changed:
            return self._has_room(_size(record))

    def offer(self, record: Record) -> bool:
        """False where it was dropped."""
        size = _size(record)
        with self._changed:
            self._offered += 1
            is_taken = self._has_room(size) and not self._is_closing
            if is_taken:
                self._take(record, size)
            else:
                self.dropped += 1
            is_news = not is_taken and not self._is_dropping
            self._is_dropping = self._is_dropping or not is_taken
        if is_news:
            self._tell_dropping()
        return is_taken

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Writes what it can within that time. May repeat."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        with self._changed:
            is_first, self._is_over = not self._is_over, True
            lost = self._offered - self.backed_up - self.dropped
            self.dropped += lost
        if is_first:
            self._tell_closed(lost)

    def _has_room(self, size: int) -> bool:
        """One may overshoot, so that no record is too large for ever."""
        return self._bytes == 0 or self._bytes + size <= self._settings.queue_bytes_max

    def _take(self, record: Record, size: int) -> None:
        self._waiting.append(Polled(round(self._clock.now() * 1000), record))
        self._bytes += size
        if len(self._waiting) == self._settings.batch_size:
            self._changed.notify_all()

    def _write_on(self) -> None:
        is_last = False
        while not is_last:
            batch, is_last = self._next_batch()
            self._write(batch)
        self._file.close()

    def _next_batch(self) -> tuple[list[Polled], bool]:
        with self._changed:
            self._changed.wait_for(self._is_due, self._settings.flush_seconds)
            batch, self._waiting = self._waiting, []
            return batch, self._is_closing

    def _is_due(self) -> bool:
        is_full = len(self._waiting) >= self._settings.batch_size
        return self._is_closing or (is_full and not self._trouble)

    def _write(self, batch: list[Polled]) -> None:
        while batch:
            part = batch[: self._settings.batch_size]
            begun = self._clock.monotonic()
            try:
                self._file.append(as_lines(rows_of(part)))
            except Exception as problem:  # noqa: BLE001  the edge of its thread: rows are held
                self._hold(batch, problem)
                return
            del batch[: len(part)]
            self._count(part)
            self._tell_written(len(part), begun)

    def _hold(self, rest: list[Polled], problem: Exception) -> None:
        trouble = str(problem) if isinstance(problem, ForebayError) else repr(problem)
        with self._changed:
            self._waiting = rest + self._waiting
            is_news, self._trouble = trouble != self._trouble, trouble
        if is_news:
            self._emit(
                "backup.failed",
                error_message=trouble,
                file_path=str(self._settings.path),
                messages_held=len(rest),
                backup_dropped=self.dropped,
            )

    def _count(self, written: list[Polled]) -> None:
        with self._changed:
            self._trouble = ""
            self._bytes -= sum(_size(record) for _, record in written)
            if not self._is_over:
                self.backed_up += len(written)
            if self._bytes <= self._settings.queue_bytes_max // 2:
                self._is_dropping = False

    def _tell_dropping(self) -> None:
        """Once until half of the queue is free again: a burst is one event."""
        self._emit(
            "backup.dropping",
            file_path=str(self._settings.path),
            queue_bytes=self._bytes,
            queue_bytes_max=self._settings.queue_bytes_max,
            backup_dropped=self.dropped,
        )

    def _tell_written(self, count: int, begun: float) -> None:
        self._emit(
            "backup.written",
            messages_written=count,
            file_path=str(self._settings.path),
            write_time_ms=round((self._clock.monotonic() - begun) * 1000, 3),
        )

    def _tell_closed(self, lost: int) -> None:
        path = str(self._settings.path)
        if lost:
            trouble = self._trouble or "Writing took longer than the time there was for it."
            self._emit("backup.lost", file_path=path, messages_lost=lost, error_message=trouble)
        self._emit(
            "backup.closed",
            file_path=path,
            backed_up=self.backed_up,
            backup_dropped=self.dropped,
        )


def _size(record: Record) -> int:
    return len(record.value or b"") + len(record.key or b"") + _HELD_BYTES
