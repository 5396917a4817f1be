"""The processes of the demo: started, watched through their ledgers, ended by their ids."""

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from forebay.cli.demo.ledger import Audit, Handled, LedgerReader, audit
from forebay.cli.demo.worker import Orders
from forebay.core.errors import Unavailable

_END_SECONDS = 10.0


class Member:
    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.ledger = LedgerReader(Path(orders.ledger))
        # A session of its own: Ctrl-C must reach only the parent, which ends everybody in order.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forebay.cli.demo.worker", orders.as_argument()],
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None


class Crew:
    def __init__(self, template: Orders, folder: Path) -> None:
        self._template = template
        self._folder = folder
        self.producers: list[Member] = []
        self.consumers: list[Member] = []
        self.killed: Member | None = None
        self.killed_at_ns = 0

    def start_consumers(self, count: int) -> None:
        self.consumers += [self._start(f"consumer-{number}") for number in range(count)]

    def start_producers(self, count: int, events: int, rate: float) -> None:
        for number in range(count):
            share = events // count + (number < events % count)
            if share:
                member = self._start(f"producer-{number}", events=share, rate=rate / count)
                self.producers.append(member)

    def catch_up(self) -> None:
        for member in (*self.producers, *self.consumers):
            member.ledger.catch_up()

    def check(self) -> None:
        """A process that ended by itself, and not by having done its share, ends the demo."""
        for member in self.working_consumers:
            if not member.is_running:
                raise _died(member)
        for member in self.producers:
            if not member.is_running and member.process.returncode != 0:
                raise _died(member)

    def kill_the_busiest(self) -> Member:
        victim = max(self.working_consumers, key=lambda member: len(member.ledger.owned))
        self.killed_at_ns = time.monotonic_ns()
        victim.process.kill()
        victim.process.wait()
        victim.ledger.catch_up()
        self.killed = victim
        return victim

    @property
    def working_consumers(self) -> list[Member]:
        return [member for member in self.consumers if member is not self.killed]

    @property
    def is_ready(self) -> bool:
        return all(member.ledger.owned for member in self.consumers)

    @property
    def has_produced_all(self) -> bool:
        return not any(member.is_running for member in self.producers)

    @property
    def produced(self) -> int:
        return sum(len(member.ledger.produced) for member in self.producers)

    @property
    def handled(self) -> int:
        return sum(len(member.ledger.handled) for member in self.consumers)

    def audit(self) -> Audit:
        produced = [id_ for member in self.producers for id_ in member.ledger.produced]
        return audit(produced, [record for handled in self._handled() for record in handled])

    def _handled(self) -> Sequence[Sequence[Handled]]:
        return [member.ledger.handled for member in self.consumers]

    def _start(self, name: str, *, events: int = 0, rate: float = 0.0) -> Member:
        ledger = str(self._folder / f"{name}.ledger")
        return Member(replace(self._template, name=name, ledger=ledger, events=events, rate=rate))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        members = [*self.producers, *self.consumers]
        for member in members:
            member.process.terminate()
        deadline = time.monotonic() + _END_SECONDS
        for member in members:
            _end(member, deadline)


def _end(member: Member, deadline: float) -> None:
    try:
        member.process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        member.process.kill()
        member.process.wait()


def _died(member: Member) -> Unavailable:
    return Unavailable(
        f"{member.orders.name} of the demo (process {member.pid}) ended by itself with code "
        f"{member.process.returncode}; what it wrote above says why. The demo was stopped."
    )
