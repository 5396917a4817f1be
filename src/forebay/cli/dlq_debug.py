"""forebay dlq debug: the stage's function on a dead letter, under pdb; nothing is sent or kept."""

import asyncio
import inspect
import pdb  # noqa: T100  the command is about it
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from functools import partial
from types import CodeType, FrameType
from typing import Any

from forebay.cli.command import DONE, Command
from forebay.cli.dlq_choice import LetterId, Of
from forebay.cli.dlq_pipelines import pipeline_of, stage_of
from forebay.cli.dlq_state import Look, open_state, write_audit
from forebay.cli.output import print_object, remark, say
from forebay.cli.payload import one_line
from forebay.core.envelope import read_envelope, user_headers
from forebay.core.errors import ForebayError
from forebay.core.failures import reason_of
from forebay.core.outcomes import EMITTING, Done, Reject, Retry, Skip
from forebay.core.records import Record
from forebay.engine.context import Context, Surroundings
from forebay.engine.functions import inspect_function
from forebay.engine.handling import output_records
from forebay.engine.ledger import Ledger
from forebay.engine.letters import DeadLetter
from forebay.engine.outside import http_client
from forebay.engine.payloads import row_values
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import RecordStage, SinkStage, Stage
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.observability.redaction import scrub

_OUTPUT_LENGTH_MAX = 200


@dataclass(frozen=True)
class DebugLetter(Command):
    id: LetterId
    of: Of = None

    def run(self) -> int:
        session = self.session()
        with open_state(session) as database:
            letter = Ledger(database).one(self.id)
            pipeline = pipeline_of(session, letter, self.of)
            stage = stage_of(letter, pipeline)
            write_audit(session, database, Look("debug", letter.id, 1))
        remark(
            f"{stage.name} on dead letter {letter.id}: {scrub(letter.reason)}\n"
            f"n goes on a line, s into a call, c to the end, q leaves."
        )
        outcome = Trial(pipeline, stage, letter).run()
        if self.as_json:
            print_object({"items": [{"id": letter.id, "outcome": outcome}], "total": 1})
        else:
            say(f"{outcome}\nNothing was sent or committed.")
        return DONE


class EntryDebugger(pdb.Pdb):
    """Quiet until the function itself is entered."""

    def __init__(self, code: CodeType | None) -> None:
        super().__init__()
        self._code = code
        self._is_there = code is None
        self.was_left = False

    def stop_here(self, frame: FrameType) -> bool:
        self._is_there = self._is_there or frame.f_code is self._code
        return self._is_there and super().stop_here(frame)

    def user_call(self, frame: FrameType, argument_list: None) -> None:
        """Its first line says more than its declaration."""
        if frame.f_code is not self._code:
            super().user_call(frame, argument_list)

    def set_quit(self) -> None:
        self.was_left = True
        super().set_quit()


class Trial:
    """One call of the function, as its stage makes it."""

    def __init__(self, pipeline: Pipeline, stage: Stage, letter: DeadLetter) -> None:
        self._pipeline = pipeline
        self._stage = stage
        self._letter = letter
        self._record = record_of(letter)
        self._function = inspect_function(
            stage.run if isinstance(stage, RecordStage) else stage.row
        )

    def run(self) -> str:
        """What its stage would make of it."""
        name = self._function.name
        try:
            payload = self._function.decode(self._record)
        except ForebayError as problem:
            return f"{name} is never called: {problem}"
        debugger = EntryDebugger(_code_of(self._function.call))
        try:
            said = self._called(debugger, payload)
        except Exception as error:  # noqa: BLE001  the user's function: it is what is looked at
            remark(f"{name} raised {reason_of(error)}. q ends.")
            pdb.post_mortem(error.__traceback__)
            return f"{name} raises {reason_of(error)}"
        finally:
            if not sys.stdin.isatty():
                say("")  # behind the prompt, which nobody ended with the return key
        return f"{name} was left before its end." if debugger.was_left else self._outcome(said)

    def _called(self, debugger: EntryDebugger, payload: object) -> object:
        """What handlers share is opened in the loop that an async function runs in."""
        call = self._function.call
        with asyncio.Runner() as runner:
            closing = AsyncExitStack()
            arguments = [payload]
            if self._function.wants_context:
                shared = runner.run(_opened(self._pipeline, closing))
                http = http_client(self._pipeline, SystemClock(), silent)
                if http is not None:
                    closing.push_async_callback(http.close)
                arguments.append(self._context(shared, http))
            try:
                if self._function.is_async:
                    return debugger.runcall(runner.run, call(*arguments))
                return debugger.runcall(call, *arguments)
            finally:
                runner.run(closing.aclose())

    def _context(self, shared: Mapping[str, Any], http: Any) -> Context:
        group = self._pipeline.route(self._stage).group
        surroundings = Surroundings(
            self._pipeline.name, self._stage.name, group, shared=shared, http=http
        )
        envelope = read_envelope(self._record._replace(headers=self._letter.headers))
        return Context(self._record, envelope, surroundings)

    def _outcome(self, said: object) -> str:
        name = self._function.name
        if isinstance(self._stage, SinkStage) and not isinstance(said, Skip):
            return f"{name} makes the row {dict(row_values(said))}."
        outputs = []
        if isinstance(said, EMITTING):
            outputs = list(output_records(self._record, said.emit or {}))
        lines = [f"  {o.topic}: {one_line(o.value, _OUTPUT_LENGTH_MAX)}" for o in outputs]
        ending = f", with {len(outputs)} outputs:" if outputs else "."
        return "\n".join([f"{name} {_told(said)}{ending}", *lines])


def _told(said: object) -> str:
    match said:
        case None | Done():
            return "is done with it"
        case Skip(reason=reason):
            return f"skips it ({reason})"
        case Retry(reason=reason):
            return f"wants it tried again ({reason})"
        case Reject(reason=reason):
            return f"rejects it ({reason})"
        case _:
            return f"returned a {type(said).__name__}, which is no outcome"


def record_of(letter: DeadLetter) -> Record:
    """As its stage first met it."""
    origin = letter.origin
    return Record(
        letter.value,
        letter.key,
        user_headers(letter.headers),
        origin.topic,
        origin.partition,
        origin.offset,
        origin.timestamp_ms,
    )


async def _opened(pipeline: Pipeline, closing: AsyncExitStack) -> dict[str, Any]:
    shared = {}
    for name, opens in pipeline.shared.items():
        manager = opens()
        if isinstance(manager, AbstractAsyncContextManager):
            shared[name] = await closing.enter_async_context(manager)
        else:
            shared[name] = closing.enter_context(manager)
    return shared


def _code_of(call: Callable[..., Any]) -> CodeType | None:
    """Below its decorators; None for what is not written in Python."""
    inner = inspect.unwrap(call)
    if isinstance(inner, partial):
        inner = inner.func
    method = inner if inspect.isroutine(inner) else type(inner).__call__
    return getattr(method, "__code__", None)
