"""The workers of the demo: real children under a supervisor, killed on demand, and taken over."""

import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from forebay.broker.port import Broker
from forebay.cli.demo.latest import Latest
from forebay.cli.run import Run, behind, child_command
from forebay.core.errors import Unavailable
from forebay.engine.health import StageHealth
from forebay.engine.pipeline import Pipeline
from forebay.engine.supervision import Child, ChildPlan, Supervisor
from forebay.engine.suspicion import Suspicion

PLANS = (ChildPlan("records"), ChildPlan("sinks"), ChildPlan("records", 1))
DRAIN_SECONDS = 5.0
DEATHS_MAX = 6

Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Member:
    """A worker as it was last seen."""

    name: str
    pid: int
    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Death:
    """`was_asked`: whoever watches pressed a key."""

    members: tuple[Member, ...]
    at: float
    was_asked: bool

    @property
    def places(self) -> frozenset[Place]:
        return frozenset().union(*(member.places for member in self.members))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Of every worker: its environment, and where it writes what it has to say."""

    environment: Mapping[str, str]
    log: Path


class Crew:
    """Belongs to the main thread."""

    def __init__(
        self, command: Run, pipeline: Pipeline, broker: Broker, around: Surroundings, latest: Latest
    ) -> None:
        self._command = command
        self._around = around
        self._latest = latest
        self._log: BinaryIO = around.log.open("ab")
        self._supervisor = Supervisor(
            PLANS, self._spawn, drain_seconds=DRAIN_SECONDS, look=lambda: behind(pipeline, broker)
        )
        self._members: dict[int, Member] = {}
        self._deaths: list[Death] = []
        self._next_victim = 0
        self._unasked = 0
        self.killed = 0

    def start(self) -> None:
        self._supervisor.start()

    def step(self, now: float) -> None:
        self._supervisor.step(now)
        self._notice(now)
        self._deaths = [death for death in self._deaths if not self._told_takeover(death, now)]

    def kill_one(self, now: float) -> None:
        """One after the other."""
        children = self._living
        if not children:
            self._latest.done("no worker runs at the moment; it is being started again")
            return
        self._kill([children[self._next_victim % len(children)]], now)
        self._next_victim += 1

    def kill_all(self, now: float) -> None:
        self._kill(self._living, now)

    def close(self) -> None:
        """At once: whatever they had not finished would be handled again."""
        self._supervisor.close()
        self._log.close()

    @property
    def is_whole(self) -> bool:
        return not self._supervisor.absent

    @property
    def is_taken_over(self) -> bool:
        return not self._deaths

    @property
    def deaths_unasked(self) -> int:
        return self._unasked

    @property
    def healths(self) -> list[StageHealth]:
        return self._supervisor.healths()

    @property
    def healths_by_process(self) -> list[tuple[int, list[StageHealth]]]:
        children = self._supervisor.children
        return [(child.process.pid, child.told.healths) for child in children]

    @property
    def process_ids(self) -> Mapping[str, int]:
        return self._supervisor.process_ids

    @property
    def _living(self) -> list[Child]:
        return [child for child in self._supervisor.children if not child.is_killed]

    def _spawn(self, plan: ChildPlan, suspicion: Suspicion, status: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            child_command(self._command, plan, suspicion, status),
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            env=dict(self._around.environment),
            pass_fds=(status,),
            process_group=0,
        )

    def _kill(self, children: Sequence[Child], now: float) -> None:
        if not children:
            return
        members = tuple(_member(child) for child in children)
        for child in children:
            self._supervisor.kill(child)
            self._members.pop(child.process.pid, None)
        self.killed += len(members)
        death = Death(members, now, was_asked=True)
        self._deaths.append(death)
        self._latest.done(_begun(death))

    def _notice(self, now: float) -> None:
        """Who has gone without being asked, and who there is now."""
        running = {child.process.pid: child for child in self._supervisor.children}
        for pid in [pid for pid in self._members if pid not in running]:
            death = Death((self._members.pop(pid),), now, was_asked=False)
            self._deaths.append(death)
            self._latest.done(_begun(death))
            self._unasked += 1
            self._check()
        for pid, child in running.items():
            if not child.is_killed:
                self._members[pid] = _member(child)

    def _check(self) -> None:
        if self._unasked >= DEATHS_MAX:
            raise Unavailable(
                f"Workers of the demo ended by themselves {self._unasked} times, so it was "
                f"stopped. {self._around.log} says why."
            )

    def _told_takeover(self, death: Death, now: float) -> bool:
        """Once everything it had is somebody's again."""
        victims = {member.pid for member in death.members}
        heirs: Counter[int] = Counter()
        held: set[Place] = set()
        for child in self._supervisor.children:
            member = _member(child)
            if member.pid not in victims:
                heirs[member.pid] += len(member.places & death.places)
                held |= member.places
        is_over = death.places <= held if death.places else self.is_whole
        if not is_over:
            return False
        after = f"after {now - death.at:.1f} s"
        self._latest.done(f"{_told(death)}; {_taken_over(death, heirs)} {after}", _begun(death))
        return True


def _member(child: Child) -> Member:
    places = frozenset(
        (health.group, partition.topic, partition.partition)
        for health in child.told.healths
        for partition in health.partitions
    )
    return Member(child.plan.name, child.process.pid, places)


def _begun(death: Death) -> str:
    return f"{_told(death)}; others take over what was not finished"


def _told(death: Death) -> str:
    if len(death.members) > 1:
        return f"you killed all {len(death.members)} workers"
    (member,) = death.members
    named = f"worker {member.pid} ({member.name})"
    return f"you killed {named}" if death.was_asked else f"{named} was killed"


def _taken_over(death: Death, heirs: Counter[int]) -> str:
    taken = [(pid, count) for pid, count in heirs.most_common() if count]
    if len(death.members) > 1:
        return f"new ones took over all {len(death.places)} partitions"
    if not taken:
        return "another took its place"
    return " and ".join(f"worker {pid} took over {count} partitions" for pid, count in taken)
