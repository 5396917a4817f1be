"""What became of a dead letter, told as records on its stage's dead-letter topic.

Markers may be read in any order, before the letter itself, and twice: the highest (replay number,
rank) decides.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import orjson

from forebay.core.envelope import PREFIX
from forebay.core.failures import writable
from forebay.core.records import Header, Record

MarkerKind: TypeAlias = Literal["replaying", "open_again", "resolved", "discarded", "note"]
EntryState: TypeAlias = Literal["open", "replaying", "resolved", "discarded"]

RANKS: dict[str, int] = {"replaying": 0, "open_again": 1, "resolved": 2, "discarded": 3}
STATES: dict[str, EntryState] = {
    "replaying": "replaying",
    "open_again": "open",
    "resolved": "resolved",
    "discarded": "discarded",
}
_MARKER = PREFIX + "marker"


@dataclass(frozen=True, slots=True)
class Marker:
    """`id` is the dead letter's; a note changes nothing but what a person reads."""

    id: str
    group: str
    kind: MarkerKind
    replay_number: int = 0
    replay_id: str = ""
    at_ms: int = 0
    actor: str = ""
    reason: str = ""


def mark(marker: Marker, topic: str, key: bytes | None) -> Record:
    """With the letter's key it lands in the letter's partition."""
    told = {
        "id": marker.id,
        "group": marker.group,
        "kind": marker.kind,
        "replay_number": marker.replay_number,
        "replay_id": marker.replay_id,
        "at_ms": marker.at_ms,
        "actor": writable(marker.actor),
        "reason": writable(marker.reason),
    }
    headers: list[Header] = [(_MARKER, orjson.dumps(told))]
    return Record(None, key, headers, topic)


def read_marker(record: Record) -> Marker | None:
    """None for what is no marker, or none that we understand."""
    written = next((value for name, value in record.headers if name == _MARKER), None)
    if written is None:
        return None
    try:
        told = orjson.loads(written)
        marker = Marker(
            str(told["id"]),
            str(told["group"]),
            told["kind"],
            int(told["replay_number"]),
            str(told["replay_id"]),
            int(told["at_ms"]),
            str(told["actor"]),
            str(told["reason"]),
        )
    except (KeyError, ValueError, TypeError):
        return None
    return marker if marker.kind in get_args(MarkerKind) else None
