"""What the handlers of one run do: drawn from its seed, call by call."""

import random
from collections.abc import Callable
from itertools import count

from engine.simulation.doors import Surroundings
from engine.simulation.oracle import Call, serial_of
from forebay.core.errors import InvalidRequest
from forebay.core.failures import Failure
from forebay.core.outcomes import Done, Outcome, Reject, Retry, Skip
from forebay.core.records import Record
from forebay.engine.work import Work

OUT, NOWHERE = "out", "nowhere"
CALM = ("done",)
STORMY = (
    *(
        "done",
        "done",
        "done",
        "done",
        "done",
        "done",
        "nothing",
        "skip",
        "retry",
        "retry_uncounted",
    ),
    *("retry_emitting", "reject", "raise_transient", "raise_unknown", "raise_permanent"),
    *("raise_at_length", "hang", "oversize", "unknown_topic"),
)
DEAD = frozenset({"reject", "raise_permanent", "oversize", "unknown_topic"})
ERRORS: dict[str, Callable[[], BaseException]] = {
    "raise_transient": lambda: OSError("reset by peer"),
    "raise_unknown": lambda: ValueError("nobody foresaw this"),
    "raise_at_length": lambda: ValueError("so much to say " * 400),
    "raise_permanent": lambda: InvalidRequest("This can never be handled."),
    "stop": lambda: SystemExit("a handler that ends the process"),
}
TRIED_AGAIN = frozenset({"raise_transient", "raise_unknown", "raise_at_length"})


class Script:
    """Implements what a ScriptedExecutor asks, for one member."""

    def __init__(
        self, around: Surroundings, numbers: "count[int]", order_by: str, timeout_seconds: float
    ) -> None:
        self._around = around
        self._numbers = numbers
        self._order_by = order_by
        self._timeout_seconds = timeout_seconds
        self._calls: dict[int, tuple[Call, str]] = {}
        self._current: tuple[Call, str] | None = None
        self._says = self._vocabulary()
        self.has_stopped = False
        self.began = 0

    def takes(self, work: Work) -> None:
        oracle = self._around.oracle
        oracle.require(not self.has_stopped, "S1: {} starts after the stop", work.record.offset)
        is_held = not work.held.is_fenced
        oracle.require(is_held, "B1: {} starts after its partition left", work.record.offset)

    def finds_nothing(self) -> None:
        self._around.faults.seen("lane_cleared")

    def begins(self, work: Work) -> float:
        chance, oracle = self._around.chance, self._around.oracle
        kind = self._choose(chance)
        verdict = "dead" if kind in DEAD else "done"
        if kind.startswith("retry") or kind in TRIED_AGAIN:
            verdict = "retry"
        elif kind == "stop":
            verdict = "nothing"
        call = Call(next(self._numbers), serial_of(work.record), work, verdict)
        call.is_retried = verdict == "retry"
        call.counts = kind != "retry_uncounted"
        self._calls[id(work)] = call, kind
        self.began += 1
        name, record = self._around.name, work.record
        oracle.note(
            f"{name} begins {{}} {{}}: call {{}}, {{}}", record.at, record.offset, call.number, kind
        )
        oracle.begins(call, self._lane_of(work))
        if kind == "hang":
            return self._timeout_seconds * chance.choice((0.5, 1.1, 1.5, 2.5, 3.5))
        return chance.choice((0, 0, 0, 0.01, 0.3))

    def runs(self, work: Work) -> None:
        self._current = self._calls[id(work)]

    def ends(self, work: Work) -> None:
        call, _ = self._calls.pop(id(work))
        call.has_returned = True
        if work.is_fenced or work.held.is_fenced:
            self._around.faults.seen("late_result")
        self._around.oracle.note(f"{self._around.name} ends call {{}}", call.number)

    def handle(self, record: Record) -> Outcome | None:
        assert self._current is not None
        call, kind = self._current
        if kind in ERRORS:
            self._around.faults.seen("handler_raised")
            error = ERRORS[kind]()
            raise error
        return self._says[kind](call)

    def _vocabulary(self) -> dict[str, Callable[[Call], Outcome | None]]:
        chance, some = self._around.chance, self._outputs
        return {
            "nothing": lambda call: None,
            "skip": lambda call: Skip("nothing to do"),
            "retry": lambda call: Retry("not now", after=chance.choice((None, None, 3.0, "1h"))),
            "retry_uncounted": lambda call: Retry("it is open", category="circuit_open"),
            "retry_emitting": lambda call: Retry("not all of it", emit={OUT: some(call, 1)}),
            "reject": lambda call: Reject("never", emit={OUT: some(call, 1)}),
            "oversize": lambda call: Done(
                {OUT: [*some(call, 1), b"%d:" % call.number + b"x" * 9_000]}
            ),
            "unknown_topic": lambda call: Done(
                {OUT: some(call, 1), NOWHERE: b"%d:0" % call.number}
            ),
            "hang": lambda call: Done({OUT: some(call, chance.randrange(4))}),
            "done": lambda call: Done({OUT: some(call, chance.randrange(4))}),
        }

    def say_more(self, record: Record, failure: Failure) -> dict[str, object]:
        """`when_dead_lettered` of the stage."""
        if not self._around.faults.are_over and self._around.chance.random() < 0.2:
            self._around.faults.seen("hook_raised")
            raise RuntimeError("a hook that fails")
        return {OUT: b"hook:%d" % serial_of(record)}

    def _choose(self, chance: random.Random) -> str:
        if self._around.faults.are_over:
            return "done"
        if chance.random() < 0.003:
            return "stop"
        return chance.choice(STORMY)

    def _outputs(self, call: Call, number: int) -> list[bytes]:
        values = [b"%d:%d" % (call.number, index) for index in range(number)]
        call.unacknowledged.update(values)
        return values

    def _lane_of(self, work: Work) -> tuple[object, ...] | None:
        name, record = self._around.name, work.record
        match self._order_by:
            case "key" if record.key is not None:
                return name, record.at, record.key
            case "partition":
                return name, record.at
            case _:
                return None
