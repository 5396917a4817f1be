"""Every event the product may emit, once: its level, its sentence, the fields it may carry."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias, get_args

from forebay.observability.mod_events import MOD_EVENTS, ModEventName

Level: TypeAlias = Literal["debug", "info", "warning", "error", "critical"]

EventName: TypeAlias = Literal[
    ModEventName,
    "audit.action",
    "broker.connected",
    "broker.lost",
    "broker.refused",
    "broker.write_gate_held",
    "broker.wal_large",
    "child.ended",
    "circuit.closed",
    "circuit.opened",
    "consumer.assigned",
    "consumer.revoked",
    "consumer.lost",
    "files.torn_replaced",
    "group.member_expelled",
    "handler.said",
    "ledger.gap_aside",
    "ledger.letter_aside",
    "partition.expired",
    "record.timed_out",
    "redelivery.held",
    "retention.trimmed",
    "seen.away",
    "stage.held",
    "stage.lane_reopened",
    "stage.stopped_by_handler",
    "stage.when_done_failed",
    "sweep.failed",
    "table.commit_set_aside",
]


_SPEAKER = ("mod_type", "mod_name")  # any event may tell them: a mod's lines all do


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
    return Event(level, message, frozenset((*fields, *_SPEAKER)))


EVENTS: Mapping[EventName, Event] = MappingProxyType(
    {
        **{name: _event(*event[:2], *event[2]) for name, event in MOD_EVENTS.items()},
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
        "circuit.closed": _event(
            "info", "Host {host} answers again and is asked as before.", "host"
        ),
        "circuit.opened": _event(
            "warning",
            "Host {host} has failed {failures} times in a row and is not asked for {open_seconds} "
            "s; what needs it waits without using attempts up.",
            *("host", "failures", "open_seconds"),
        ),
        "child.ended": _event(
            "error",
            "Worker {worker} (process {pid}) ended with code {exit_code}. It is started again in "
            "{restart_seconds} s; what it had not finished is handled again.",
            *("worker", "pid", "exit_code", "restart_seconds"),
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
        "files.torn_replaced": _event(
            "warning",
            "{blob_path} below {folder} was torn by a lost power supply: some of its content never "
            "reached the disk. It was replaced by the same file, whole.",
            *("blob_path", "folder", "bytes"),
        ),
        "group.member_expelled": _event(
            "warning",
            "Member {member} stopped answering and was expelled ({reason}); its partitions go to "
            "the others.",
            *("consumer_group", "member", "reason", "generation", "pid", "client_id"),
        ),
        "handler.said": _event(
            "info",
            "{text}",
            *("text", "details", "pipeline", "stage", "topic", "partition", "offset", "attempt"),
        ),
        "ledger.gap_aside": _event(
            "warning",
            "That offsets {from_offset} to {to_offset} of {topic}[{partition}] expired unread was "
            "written into {state_file} of this worker; an audit where the ledger is does not see "
            "it, if that is another file.",
            *("consumer_group", "topic", "partition", "from_offset", "to_offset", "state_file"),
        ),
        "ledger.letter_aside": _event(
            "warning",
            "Dead letter {letter_id} is larger than {topic} takes. It was written into "
            "{state_file} of this worker; forebay dlq finds it only with that file.",
            *("letter_id", "topic", "state_file"),
        ),
        "partition.expired": _event(
            "error",
            "{records} records of {topic}[{partition}] were deleted before group {consumer_group} "
            "read them. It goes on at offset {to_offset}.",
            *("records", "topic", "partition", "consumer_group", "from_offset", "to_offset"),
            *("stage", "pipeline"),
        ),
        "record.timed_out": _event(
            "warning",
            "The handler of stage {stage} did not return within {limit_seconds} s for offset "
            "{offset} of {topic}[{partition}]. The record goes to the dead letters.",
            *("stage", "pipeline", "topic", "partition", "offset", "limit_seconds"),
        ),
        "redelivery.held": _event(
            "warning",
            "Retries of group {consumer_group} wait: {lag} records are in front of them.",
            *("consumer_group", "lag", "topic", "reason"),
        ),
        "retention.trimmed": _event(
            "info",
            "Retention deleted {records} records of {topic}.",
            *("topic", "partition", "records", "bytes", "offset", "reason", "duration_ms"),
        ),
        "stage.held": _event(
            "warning",
            "Stage {stage} of {pipeline} waits; nothing is lost. {reason}",
            *("stage", "pipeline", "reason"),
        ),
        "stage.lane_reopened": _event(
            "error",
            "The handler of stage {stage} still runs for offset {offset} of {topic}[{partition}]. "
            "What waits behind it goes on: two handlers of one key may overlap.",
            *("stage", "pipeline", "topic", "partition", "offset"),
        ),
        "stage.stopped_by_handler": _event(
            "critical",
            "A handler of stage {stage} raised {error_type}, which stops the stage. Its record was "
            "not resolved. {error_message}",
            *("stage", "pipeline", "error_type", "error_message"),
        ),
        "seen.away": _event(
            "warning",
            "What was seen before cannot be looked up ({error_message}). Events are handled all "
            "the same; repeats among them are noticed by the tables.",
            "error_message",
        ),
        "sweep.failed": _event(
            "warning",
            "What crashes left behind was not removed ({error_message}). It takes room and does "
            "no other harm; the next sweep is in an hour.",
            "error_message",
        ),
        "stage.when_done_failed": _event(
            "warning",
            "What stage {stage} does after its records are done failed ({error_type}: "
            "{error_message}). The records are done all the same; a repeat of them may not be "
            "noticed.",
            *("stage", "pipeline", "error_type", "error_message"),
        ),
        "table.commit_set_aside": _event(
            "warning",
            "Commit {version} of table {table} was left half written by a power cut. It was set "
            "aside, its position with it: its rows are read and stored again.",
            *("table", "version"),
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
