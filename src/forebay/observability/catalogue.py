"""Every event the product may emit, once: its level, its sentence, the fields it may carry."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias, get_args

Level: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]

EventName: TypeAlias = Literal[
    "audit.action",
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


def _event(level: Level, message: str, *fields: str) -> Event:
    return Event(level, message, frozenset(fields))


EVENTS: Mapping[EventName, Event] = MappingProxyType(
    {
        "audit.action": _event(
            "info",
            "{actor} did {action} on {target} ({affected} affected).",
            *("actor", "action", "target", "affected", "reason", "outcome"),
        ),
        "broker.connected": _event(
            "info",
            "The broker answers: {broker}.",
            *("detail", "broker", "identity", "kind", "duration_ms", "version"),
        ),
        "broker.lost": _event(
            "warning",
            "The broker cannot be reached; trying again. {error_message}",
            *("broker", "error_type", "error_code", "error_message", "client_id", "duration_ms"),
        ),
        "broker.refused": _event(
            "error",
            "The broker refuses this client; a person must act. {error_message}",
            *("broker", "error_type", "error_code", "error_message", "client_id", "principal"),
        ),
        "broker.write_gate_held": _event(
            "warning",
            "Another process has held the write gate of the broker for {duration_ms} ms; writes "
            "wait for it.",
            *("duration_ms", "holder_pid", "folder", "pid", "error_message"),
        ),
        "broker.wal_large": _event(
            "warning",
            "The write-ahead log has grown to {bytes} bytes: an old reader keeps it from being "
            "emptied. Writing goes on; end that reader.",
            *("bytes", "limit_bytes", "folder", "error_message"),
        ),
        "consumer.assigned": _event(
            "info",
            "Partitions {partitions} were assigned to this member of group {consumer_group}.",
            *("partitions", "consumer_group", "member", "generation", "client_id"),
        ),
        "consumer.revoked": _event(
            "info",
            "Partitions {partitions} were handed over by this member of group {consumer_group}.",
            *("partitions", "consumer_group", "member", "generation", "client_id"),
        ),
        "consumer.lost": _event(
            "warning",
            "Partitions {partitions} were lost by this member of group {consumer_group}; what it "
            "had not committed is read again elsewhere.",
            *("partitions", "consumer_group", "member", "generation", "client_id", "reason"),
        ),
        "group.member_expelled": _event(
            "warning",
            "Member {member} stopped answering and was expelled ({reason}); its partitions go to "
            "the others.",
            *("consumer_group", "member", "reason", "generation", "pid", "client_id"),
        ),
        "retention.trimmed": _event(
            "info",
            "Retention deleted {records} records of {topic}.",
            *("topic", "partition", "records", "bytes", "offset", "reason", "duration_ms"),
        ),
    }
)


def entry(event: EventName) -> Event:
    if event not in EVENTS:
        raise ValueError(f"There is no event {event!r}; declare it in observability/catalogue.py.")
    return EVENTS[event]


def is_logged(event: EventName, level: Level) -> bool:
    """What a person did to the data is told at any level."""
    if event == "audit.action":
        return True
    levels = get_args(Level)
    return levels.index(entry(event).level) >= levels.index(level)
