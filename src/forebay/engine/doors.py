"""What an engine loop reaches the world by, and what it tells who drives it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple, TypeAlias

from forebay.broker.port import Admin, Consumer, Producer
from forebay.core.clock import Clock
from forebay.core.records import Offset, TopicPartition
from forebay.engine.single_file import SingleFile
from forebay.observability.catalogue import Emit, silent

DRAIN_SECONDS = 30.0
IDLE_SECONDS = 0.2

Until: TypeAlias = Literal["finished", "reports", "records"]


class Wait(NamedTuple):
    """What there is to wait for, and how long at most."""

    until: Until
    seconds: float


class ExpiredRange(NamedTuple):
    """Records that a group never saw: retention, or another topic of that name, took them."""

    group: str
    at: TopicPartition
    from_offset: Offset
    to_offset: Offset


def told_by_events_alone(_expired: ExpiredRange) -> None:
    """For pipelines that keep no state."""


@dataclass(frozen=True, slots=True)
class Doors:
    """All but the admin belong to the loop's thread."""

    consumer: Consumer
    producer: Producer
    admin: Admin
    clock: Clock
    emit: Emit = silent
    expired: Callable[[ExpiredRange], None] = told_by_events_alone


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """`stops` are exclusive. `by_hand` reads from there, joins no group and commits nothing.

    `stops_at`: whether any of `stops` ends the loop, or all of those that it reads.
    `supervised`: somebody starts the process again, so a handler that never returns ends it.
    `revoke_seconds`: what a rebalance waits at most, where that is less than `drain_seconds`.
    `drains_queue`: a stop also waits for what was delivered and has not started.
    `commits_at_end`: a stop commits once more.
    """

    by_hand: Mapping[TopicPartition, Offset] | None = None
    stops: Mapping[TopicPartition, Offset] = field(default_factory=dict)
    stops_at: Literal["any", "all"] = "all"
    records_max: int | None = None
    supervised: bool = False
    drain_seconds: float = DRAIN_SECONDS
    revoke_seconds: float = inf
    drains_queue: bool = False
    commits_at_end: bool = True
    idle_seconds: float = IDLE_SECONDS
    commits_when_idle_after_seconds: float = 1.0
    single_file: SingleFile | None = None

    @property
    def joins_group(self) -> bool:
        return self.by_hand is None
