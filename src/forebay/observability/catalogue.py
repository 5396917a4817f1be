"""Every event the product may emit, once: its level, its sentence, the fields it may carry."""

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Level: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]

EventName: TypeAlias = Literal[
    "broker.connected",
    "broker.lost",
    "broker.refused",
    "broker.write_gate_held",
    "broker.wal_large",
    "consumer.assigned",
    "consumer.revoked",
    "consumer.lost",
    "group.member_expelled",
    "retention.trimmed",
]


class Emit(Protocol):
    """How a room says what happened. Never blocks, never raises for what it is told."""

    def __call__(self, event: EventName, **fields: object) -> None: ...


def silent(event: EventName, **fields: object) -> None:
    """For those who want no events."""


@dataclass(frozen=True, slots=True)
class Event:
    level: Level
    message: str
    fields: frozenset[str]
