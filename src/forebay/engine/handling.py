"""Runs a user's function on one record. The stage's edge: whatever it raises becomes a value."""

import asyncio
import time
import traceback
from collections.abc import Mapping

from forebay.core.durations import seconds
from forebay.core.envelope import user_headers
from forebay.core.errors import InvalidRequest
from forebay.core.failures import (
    CIRCUIT_OPEN,
    NONSENSE,
    TRANSIENT,
    UNKNOWN,
    Failure,
    category_of,
    reason_of,
    retry_after_of,
)
from forebay.core.outcomes import DONE, EMITTING, OUTCOMES, Outcome, Retry
from forebay.core.records import Header, Record
from forebay.core.retries import IN_PLACE_SECONDS, RetryPolicy
from forebay.engine.context import Context, Surroundings
from forebay.engine.functions import Function
from forebay.engine.payloads import encode
from forebay.engine.work import Result, Stop, Work

_MANY = (list, tuple)
TRACE_HEADERS = frozenset({"trace_id", "w3c_trace_id", "traceparent", "tracestate", "domain"})


class Handler:
    """Called by executors only, each work once. Safe from many threads."""

    def __init__(
        self,
        function: Function,
        surroundings: Surroundings,
        retry: RetryPolicy,
        stops_on: tuple[type[BaseException], ...],
    ) -> None:
        self._function = function
        self._call = function.call
        self._decode = function.decode
        self._wants_context = function.wants_context
        self._surroundings = surroundings
        self._monotonic = surroundings.clock.monotonic
        self._pauses = IN_PLACE_SECONDS[: retry.in_place]
        self._stops_on = stops_on

    @property
    def is_async(self) -> bool:
        return self._function.is_async

    def run(self, work: Work) -> None:
        work.started_at = self._monotonic()
        self._attempt(work)
        for pause in self._pauses:
            blip = work.result
            if not _is_a_blip(blip) or work.is_fenced:
                break
            time.sleep(pause)
            self._attempt(work)
            work.result = _what_counts(blip, work.result)
        work.finished_at = self._monotonic()

    async def run_async(self, work: Work) -> None:
        work.started_at = self._monotonic()
        await self._attempt_async(work)
        for pause in self._pauses:
            blip = work.result
            if not _is_a_blip(blip) or work.is_fenced:
                break
            await asyncio.sleep(pause)
            await self._attempt_async(work)
            work.result = _what_counts(blip, work.result)
        work.finished_at = self._monotonic()

    def _attempt(self, work: Work) -> None:
        try:
            payload = self._decode(work.record)
            if self._wants_context:
                context = Context(work.record, work.envelope, self._surroundings)
                said = self._call(payload, context)
            else:
                said = self._call(payload)
            self._take(work, said)
        except BaseException as error:  # noqa: BLE001  the stage's edge, see `_failed`
            work.outputs = None
            work.result = self._failed(error)

    async def _attempt_async(self, work: Work) -> None:
        try:
            payload = self._decode(work.record)
            if self._wants_context:
                context = Context(work.record, work.envelope, self._surroundings)
                said = await self._call(payload, context)
            else:
                said = await self._call(payload)
            self._take(work, said)
        except BaseException as error:  # noqa: BLE001  the same
            work.outputs = None
            work.result = self._failed(error)

    def _take(self, work: Work, said: object) -> None:
        """Outputs are written into records here, where a mistake is still the handler's."""
        work.outputs = None
        if said is None:
            work.result = DONE
            return
        if not isinstance(said, OUTCOMES):
            work.result = _nonsense(self._function.name, said)
            return
        if isinstance(said, Retry) and said.after is not None:
            seconds(said.after)
        if isinstance(said, EMITTING) and said.emit:
            work.outputs = output_records(work.record, said.emit)
        work.result = said

    def _failed(self, error: BaseException) -> Result:
        if isinstance(error, self._stops_on):
            return Stop(error)
        try:
            return _told(error)
        except Exception as fault:  # noqa: BLE001  a user's class; else it would end its worker
            name = type(error).__name__
            return Failure(UNKNOWN, f"{name}, which raises {type(fault).__name__} itself", name)


def _told(error: BaseException) -> Failure:
    frames = error.__traceback__ and error.__traceback__.tb_next
    stack = "".join(traceback.format_exception(type(error), error, frames))
    return Failure(
        category_of(error),
        reason_of(error),
        type(error).__name__,
        stack,
        retry_after_of(error),
    )


def output_records(source: Record, emit: Mapping[str, object]) -> list[Record]:
    """A plain value keeps its source's key and trace; a Record says all of it itself."""
    outputs: list[Record] = []
    for topic, given in emit.items():
        if isinstance(given, _MANY) and not isinstance(given, Record):
            outputs += [_output(source, topic, value) for value in given]
        else:
            outputs.append(_output(source, topic, given))
    return outputs


def _output(source: Record, topic: str, value: object) -> Record:
    if isinstance(value, Record):
        headers = user_headers(value.headers)
        record = value._replace(topic=topic, value=encode(value.value), headers=headers)
        return _checked(record)
    written = value if isinstance(value, bytes) else encode(value)
    made = Record(written, source.key, _trace(source), topic)
    return made if isinstance(topic, str) else _checked(made)


def _checked(record: Record) -> Record:
    is_sound = (
        isinstance(record.topic, str)
        and isinstance(record.key, bytes | None)
        and isinstance(record.partition, int)
        and isinstance(record.timestamp_ms, int)
        and all(
            isinstance(name, str) and isinstance(value, bytes | None)
            for name, value in record.headers
        )
    )
    if not is_sound:
        raise InvalidRequest(
            f"An output for {record.topic!r} cannot be written: its key and the values of its "
            f"headers must be bytes or None, its partition a number."
        )
    return record


def _trace(source: Record) -> list[Header]:
    return [header for header in source.headers if header[0] in TRACE_HEADERS]


def _is_a_blip(result: Result | None) -> bool:
    match result:
        case Retry(after=None, category="transient", counts=True):
            return True
        case Failure(category=category, retry_after_seconds=None):
            return category == TRANSIENT
        case _:
            return False


def _what_counts(blip: Result | None, then: Result | None) -> Result | None:
    """A circuit that this very record has opened does not undo that it was tried and failed."""
    is_held_back = isinstance(then, Failure) and then.category == CIRCUIT_OPEN
    return blip if is_held_back else then


def _nonsense(name: str, said: object) -> Failure:
    kind = type(said).__name__
    return Failure(
        NONSENSE,
        f"{name} returned a {kind}, which is no outcome; return Done, Retry, Reject, Skip or "
        f"nothing.",
    )


def outcome_failure(outcome: Outcome | Failure, stage: str) -> Failure:
    """What a person is told about an outcome that is no success."""
    match outcome:
        case Failure():
            return outcome
        case Retry(reason=reason, category=category):
            return Failure(category, reason)
        case _:
            raise InvalidRequest(f"{stage}: {outcome!r} is no failure.")
