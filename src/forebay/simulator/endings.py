"""What must come out of an event, in the units of an audit."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["attachments", "nothing_to_do", "malformed", "repeat"]
State = Literal["stored", "dead_lettered", "refused"]


@dataclass(frozen=True, slots=True)
class Ending:
    """Size and hash of what is stored; category and word of what is not."""

    state: State
    size: int = 0
    sha256: str = ""
    category: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class AttachmentTruth:
    url: str
    ending: Ending


@dataclass(frozen=True, slots=True)
class Truth:
    """`attachments` are those that this event brings for the first time.

    `renewed`: the trace id is known, the links are fresh. `trace_id` is empty where the value
    shows none.
    """

    kind: Kind
    trace_id: str
    attachments: tuple[AttachmentTruth, ...] = ()
    renewed: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedEvent:
    at_seconds: float
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    truth: Truth


@dataclass(frozen=True, slots=True)
class FileHostAddress:
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def refused(word: str) -> Ending:
    return Ending("refused", category="permanent", word=word)
