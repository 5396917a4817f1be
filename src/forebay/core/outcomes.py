"""What a handler says became of a record. Outcomes are values; exceptions are for surprises."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Emit: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Done:
    """Handled. `emit` maps a topic to a payload, a Record, or a list of them."""

    emit: Emit | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Not now. `after` (seconds or text such as "30s") takes the first tier at least that long.

    `category` groups failures for people. `counts` False tries again without using an attempt up.
    """

    reason: str
    after: float | str | None = None
    emit: Emit | None = None
    category: str = "transient"
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Reject:
    """Never: to the dead letters at once."""

    reason: str
    category: str = "permanent"
    emit: Emit | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Nothing to do, by a policy that has a name."""

    reason: str


Outcome: TypeAlias = Done | Retry | Reject | Skip

DONE = Done()
EMITTING = (Done, Retry, Reject)
OUTCOMES = (Done, Retry, Reject, Skip)
