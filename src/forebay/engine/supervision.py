"""Child processes that run the parts of a pipeline: started, watched, started again, stopped."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import orjson

from forebay.core.records import Offset
from forebay.engine.health import StageHealth, health_from
from forebay.engine.receipt import Receipt, receipt_of
from forebay.engine.single_file import Place
from forebay.engine.suspicion import Suspicion
from forebay.observability.catalogue import Emit, silent

RESTART_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CALM_SECONDS = 60.0
MERCY_SECONDS = 3.0

ENDED_WELL = 0
ENDED_LATE = 1
ASKS_FOR_RESTART = 75
STOPPED_BY_HANDLER = 70
WRONG_USE = 2
UNHEARD = -signal.SIGTERM  # asked before it could listen: it had begun nothing
FINAL = {ENDED_WELL, STOPPED_BY_HANDLER, WRONG_USE}  # starting it again would change nothing


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """`part` as of PipelineRun; `copy` tells copies of one part apart."""

    part: str
    copy: int = 0

    @property
    def name(self) -> str:
        return f"{self.part}-{self.copy}" if self.copy else self.part


Spawn: TypeAlias = Callable[[ChildPlan, Suspicion, int], subprocess.Popen[bytes]]


@dataclass(slots=True)
class Told:
    """What a child said last over its pipe."""

    healths: list[StageHealth] = field(default_factory=list)
    is_idle: bool = False
    is_whole: bool = False
    left_behind: int = 0
    named: list[Any] | None = None


class Child:
    """One process and what it says. Its standard input is a leash: it ends when that closes."""

    def __init__(self, plan: ChildPlan, suspicion: Suspicion, spawn: Spawn) -> None:
        self.plan = plan
        self.told = Told()
        self.is_killed = False
        self._reading, writing = os.pipe()
        try:
            self.process = spawn(plan, suspicion, writing)
        finally:
            os.close(writing)
        self.started_at = time.monotonic()
        self._reader = threading.Thread(target=self._read, name=f"{plan.name}-status", daemon=True)
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        return self.process.poll()

    def signal(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)

    def finish(self) -> None:
        """After its end: hear out what it said."""
        self.process.wait()
        self._reader.join(MERCY_SECONDS)
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _read(self) -> None:
        with os.fdopen(self._reading, "rb") as lines:
            for line in lines:
                with suppress(ValueError, KeyError, TypeError):  # cut where the process died
                    self._hear(orjson.loads(line))

    def _hear(self, said: dict[str, Any]) -> None:
        if "healths" not in said:
            self.told.named = said["named"]
            return
        self.told.healths = [health_from(health) for health in said["healths"]]
        self.told.is_idle = said["is_idle"]
        self.told.is_whole = said["is_whole"]
        self.told.left_behind = said["left_behind"]


@dataclass(slots=True)
class Slot:
    """A place that a child fills: the process may change, the place stays."""

    plan: ChildPlan
    child: Child | None = None
    deaths: int = 0
    start_at: float = 0.0
    is_done: bool = False
    suspicion: Suspicion = field(default_factory=Suspicion)
    past: list[StageHealth] = field(default_factory=list)
    left_behind: int = 0


class Supervisor:
    """Belongs to the main thread; `stop` may come from a signal handler."""

    def __init__(
        self,
        plans: Sequence[ChildPlan],
        spawn: Spawn,
        *,
        drain_seconds: float,
        look: Callable[[], Mapping[Place, Offset]] = dict,
        emit: Emit = silent,
    ) -> None:
        self._look = look
        self._slots = [Slot(plan) for plan in plans]
        self._spawn = spawn
        self._drain_seconds = drain_seconds
        self._emit = emit
        self._kill_at: float | None = None
        self._signals = 0
        self.worst = ENDED_WELL
        self.restarts = 0

    def start(self) -> None:
        for slot in self._slots:
            self._fill(slot)

    def step(self, now: float) -> None:
        """Notice ends, start again, and lose patience."""
        for slot in self._slots:
            if slot.child is not None and slot.child.exit_code is not None:
                self._ended(slot, slot.child, now)
            if slot.child is None and not slot.is_done and now >= slot.start_at:
                self._fill(slot)
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_all()

    def stop(self) -> None:
        """Ask once; the second time nobody is asked any more."""
        self._signals += 1
        if self._signals > 1:
            self.worst = max(self.worst, ENDED_LATE)
            self._kill_all()
            return
        self._kill_at = time.monotonic() + self._drain_seconds + MERCY_SECONDS
        for slot in self._slots:
            if slot.child is None:
                slot.is_done = True
            else:
                slot.child.signal(signal.SIGTERM)

    @property
    def is_stopping(self) -> bool:
        return self._signals > 0

    @property
    def is_over(self) -> bool:
        return all(slot.is_done for slot in self._slots)

    @property
    def is_idle(self) -> bool:
        """Every child says so. What lies between them only the broker knows."""
        return all(slot.is_done or self._is_idle(slot) for slot in self._slots)

    def kill(self, child: Child) -> None:
        """Somebody wants to see it: no record is suspected of this death."""
        child.is_killed = True
        child.signal(signal.SIGKILL)

    @property
    def children(self) -> list[Child]:
        """Those that run now."""
        return [slot.child for slot in self._slots if slot.child]

    @property
    def process_ids(self) -> Mapping[str, int]:
        return {slot.plan.name: slot.child.process.pid for slot in self._slots if slot.child}

    def healths(self) -> list[StageHealth]:
        """Of the processes that run now."""
        return [health for slot in self._slots if slot.child for health in slot.child.told.healths]

    @property
    def absent(self) -> list[str]:
        """Workers that do not run, or not with all their parts."""
        return [
            slot.plan.name
            for slot in self._slots
            if not (slot.is_done or (slot.child is not None and slot.child.told.is_whole))
        ]

    def receipt(self, seconds: float) -> Receipt:
        """Of all processes that ran: one that was killed counts as far as it was heard."""
        past = [health for slot in self._slots for health in slot.past]
        left_behind = sum(slot.left_behind for slot in self._slots)
        return receipt_of([*past, *self.healths()], seconds, left_behind)

    def close(self) -> None:
        """Nobody is left behind, whatever happened."""
        self._kill_all()
        for slot in self._slots:
            if slot.child is not None:
                slot.child.finish()

    def _fill(self, slot: Slot) -> None:
        """A signal may come meanwhile: it did not find this child."""
        slot.child = Child(slot.plan, slot.suspicion, self._spawn)
        if self.is_stopping:
            slot.is_done = False
            slot.child.signal(signal.SIGTERM)

    def _is_idle(self, slot: Slot) -> bool:
        return slot.child is not None and slot.child.told.is_idle

    def _ended(self, slot: Slot, child: Child, now: float) -> None:
        child.finish()
        code = child.process.returncode
        slot.past += child.told.healths
        slot.left_behind = child.told.left_behind
        slot.child = None
        if self.is_stopping or code in FINAL:
            slot.is_done = True
            is_late = code not in {ENDED_WELL, UNHEARD}
            self.worst = max(self.worst, ENDED_LATE if is_late else ENDED_WELL)
            if not self.is_stopping:
                self.stop()
            return
        self._start_again(slot, child, code, now)

    def _start_again(self, slot: Slot, child: Child, code: int, now: float) -> None:
        """A child that asked for it is started at once, one that died with a growing pause."""
        self.restarts += 1
        slot.past = [replace(past, unresolved=0, next_due_ms=None) for past in slot.past]
        pause = RESTART_SECONDS[0] if child.is_killed else 0.0
        if code != ASKS_FOR_RESTART and not child.is_killed:
            lived = now - child.started_at
            has_moved = slot.suspicion.died(self._look(), child.told.named)
            slot.deaths = 1 if lived >= CALM_SECONDS or has_moved else slot.deaths + 1
            pause = RESTART_SECONDS[min(slot.deaths, len(RESTART_SECONDS)) - 1]
        slot.start_at = now + pause
        self._emit(
            "child.ended",
            worker=slot.plan.name,
            exit_code=code,
            pid=child.process.pid,
            restart_seconds=pause,
        )

    def _kill_all(self) -> None:
        for slot in self._slots:
            if slot.child is not None:
                slot.child.signal(signal.SIGKILL)
