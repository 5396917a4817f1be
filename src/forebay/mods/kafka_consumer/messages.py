"""What happens to one message: its size is looked at, the user's callable runs, both are told."""

import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from itertools import count
from typing import Any

from forebay.core.outcomes import Reject
from forebay.core.records import Record
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.telling import Teller, milliseconds

TOO_LARGE = "MessageTooLargeError"
STOPS_ON = (KeyboardInterrupt, MemoryError)


class Messages:
    """Its `handle` is the stage's function. Called by many workers at once."""

    def __init__(self, configuration: Configuration, tell: Teller) -> None:
        self._process = configuration.processor.call
        self._is_async = configuration.processor.is_async
        self._size_max = configuration.max_message_size
        self._limit_seconds = configuration.processing_timeout
        self._tell = tell
        self._tells_success = tell.tells("mod.message_processed")
        self._worker_id: ContextVar[int] = ContextVar("worker_id")
        self._numbers = count()

    @property
    def handle(self) -> Callable[[Record], Any]:
        return self._handle_async if self._is_async else self._handle

    def _handle(self, record: Record) -> Reject | None:
        if (value := record[0]) is not None and len(value) > self._size_max:
            return self._too_large(record, len(value))
        started_at = time.monotonic()
        try:
            self._process(record)
        except STOPS_ON:
            raise
        except (Exception, SystemExit) as error:
            self._tell_failure(record, error, time.monotonic() - started_at)
            raise
        if self._tells_success:
            self._tell_success(record, time.monotonic() - started_at)
        return None

    async def _handle_async(self, record: Record) -> Reject | None:
        if (value := record[0]) is not None and len(value) > self._size_max:
            return self._too_large(record, len(value))
        started_at = time.monotonic()
        try:
            await self._process(record)
        except STOPS_ON:
            raise
        except (Exception, SystemExit) as error:
            self._tell_failure(record, error, time.monotonic() - started_at)
            raise
        if self._tells_success:
            self._tell_success(record, time.monotonic() - started_at)
        return None

    def _too_large(self, record: Record, size: int) -> Reject:
        self._tell("mod.message_too_large", **_place(record), size=size, max_size=self._size_max)
        return Reject(f"Message size {size} exceeds max {self._size_max}", category=TOO_LARGE)

    def _tell_success(self, record: Record, seconds: float) -> None:
        """A late one was dead-lettered already."""
        if self._limit_seconds is None or seconds <= self._limit_seconds:
            self._tell("mod.message_processed", **_place(record), **self._work(seconds))

    def _tell_failure(self, record: Record, error: BaseException, seconds: float) -> None:
        if not self._tell.tells("mod.message_failed"):
            return
        frames = error.__traceback__ and error.__traceback__.tb_next
        self._tell(
            "mod.message_failed",
            **_place(record),
            **self._work(seconds),
            error_type=type(error).__name__,
            error_message=text_of(error),
            stack_trace="".join(traceback.format_exception(type(error), error, frames)),
        )

    def _work(self, seconds: float) -> dict[str, object]:
        return {"processing_time_ms": milliseconds(seconds), "worker_id": self._number()}

    def _number(self) -> int:
        """A context of its own has every thread, and every task."""
        number = self._worker_id.get(None)
        if number is None:
            number = next(self._numbers)
            self._worker_id.set(number)
        return number


def text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a user's class; its name must do
        return ""


def _place(record: Record) -> dict[str, object]:
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}


def timeout_teller(tell: Teller) -> Callable[..., None]:
    """The engine says that a record timed out; the mod's document calls that a failure."""

    def told(*, limit_seconds: float, **fields: object) -> None:
        tell(
            "mod.message_failed",
            topic=fields["topic"],
            partition=fields["partition"],
            offset=fields["offset"],
            processing_time_ms=milliseconds(limit_seconds),
            error_type="TimeoutError",
            error_message=f"The processor did not return within {limit_seconds:g} s.",
        )

    return told
