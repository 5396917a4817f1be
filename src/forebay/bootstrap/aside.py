"""Says so where a process writes down what belongs into the ledger on another machine."""

from collections.abc import Callable
from pathlib import Path

from forebay.engine.dead_letters import DeadLetter, Spill
from forebay.engine.doors import ExpiredRange
from forebay.engine.routes import LEDGER
from forebay.observability.catalogue import Emit

KEEPERS = frozenset({"all", "records", "sinks", LEDGER})


class ToldSpill:
    def __init__(self, spill: Spill, state_file: Path, emit: Emit) -> None:
        self._spill = spill
        self._state_file = state_file
        self._emit = emit

    def keep(self, letter: DeadLetter, topic: str) -> None:
        self._spill.keep(letter, topic)
        self._emit(
            "ledger.letter_aside",
            letter_id=letter.envelope.id,
            topic=topic,
            state_file=str(self._state_file.absolute()),
        )


def told_expired(
    record: Callable[[ExpiredRange], None], state_file: Path, emit: Emit
) -> Callable[[ExpiredRange], None]:
    def tell(expired: ExpiredRange) -> None:
        record(expired)
        emit(
            "ledger.gap_aside",
            consumer_group=expired.group,
            topic=expired.at.topic,
            partition=expired.at.partition,
            from_offset=expired.from_offset,
            to_offset=expired.to_offset,
            state_file=str(state_file.absolute()),
        )

    return tell
