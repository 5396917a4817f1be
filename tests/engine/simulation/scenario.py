"""One run: a seed chooses the stage, the faults and every interleaving."""

import random
import traceback
from collections import Counter
from dataclasses import dataclass, field

from engine.simulation.faults import Faults
from engine.simulation.member import Kinds
from engine.simulation.oracle import Violation
from engine.simulation.world import World

STEPS = 220
ROUNDS_TO_DRAIN = 400


@dataclass(slots=True)
class Told:
    """What became of one run. `violation` is empty where all held."""

    seed: int
    violation: str = ""
    trail: str = ""
    steps: int = 0
    commits: int = 0
    acked: int = 0
    delivered: int = 0
    lost: int = 0
    stuck: int = 0
    doubled: int = 0
    repeated: int = 0
    faults: Counter[str] = field(default_factory=Counter)


def run(seed: int, kinds: Kinds | None = None) -> Told:
    told = Told(seed)
    chance = random.Random(seed)
    world = World(chance, Faults(chance, told.faults), kinds or Kinds())
    try:
        _storm(world, chance, told)
        _calm(world, told)
    except Violation as violation:
        told.violation = str(violation)
    except Exception as error:  # noqa: BLE001  a step that raises is a bug like another
        told.violation = f"a step raised {type(error).__name__}: {error}"
        told.trail = _frames(error)
    _count(world, told)
    return told


def _storm(world: World, chance: random.Random, told: Told) -> None:
    for _ in range(STEPS):
        told.steps += 1
        world.act()
        member = chance.choice(world.members) if world.members else None
        if member is not None:
            member.move()
        else:
            world.join()


def _calm(world: World, told: Told) -> None:
    """The faults are over: everything must come to an end, in bounded time."""
    world.calm_down()
    for _ in range(ROUNDS_TO_DRAIN):
        told.steps += len(world.members)
        world.settle_down()
        if world.is_drained():
            break
    else:
        told.stuck = len(world.oracle.lost())
        raise Violation(f"stuck: {world.what_is_left()}")
    lost = world.oracle.lost()
    if lost:
        told.lost = len(lost)
        raise Violation(f"lost: {[world.oracle.entries[serial].record for serial in lost]}")
    for member in world.members:
        member.check_nothing_held()


def _count(world: World, told: Told) -> None:
    oracle = world.oracle
    told.commits = oracle.commits
    told.acked = world.produced
    told.delivered = sum(oracle.deliveries.values())
    told.repeated = told.delivered - len(oracle.deliveries)
    told.doubled = sum(max(0, len(calls) - 1) for calls in oracle.calls_of.values())
    told.trail = f"{oracle.told()}\n{told.trail}"


def _frames(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-6:])
