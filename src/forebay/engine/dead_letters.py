"""Where a stage's dead letters go: a topic of its own, or a durable file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from forebay.core.envelope import Envelope
from forebay.core.records import Record


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The record as it was read, byte for byte, and what became of it."""

    record: Record
    envelope: Envelope
    processing_ms: float | None = None


class LetterFile(Protocol):
    """Belongs to the engine thread of one stage."""

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Durable on return, all or none. Blocking. Raises Unavailable where it may pass.

        A repeat after a failure may store a letter twice.
        """
        ...

    def close(self) -> None:
        """May repeat."""
        ...


class Spill(Protocol):
    """Takes letters that no record of the dead-letter topic can hold."""

    def keep(self, letter: DeadLetter, topic: str) -> None:
        """Durable on return. Idempotent. Raises Unavailable."""
        ...
