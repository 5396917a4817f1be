"""Dead letters that no record of their topic can hold become rows of the ledger at once."""

from collections.abc import Callable, Mapping

from forebay.core.envelope import seal
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.ledger_rows import StageName
from forebay.engine.ledger_sink import LedgerSink
from forebay.state.port import Database


class LedgerSpill:
    def __init__(self, open_state: Callable[[], Database], stages: Mapping[str, StageName]) -> None:
        self._open_state = open_state
        self._stages = stages

    def keep(self, letter: DeadLetter, topic: str) -> None:
        record = letter.record
        buried = record._replace(topic=topic, headers=seal(record, letter.envelope))
        LedgerSink(self._open_state(), self._stages).commit([buried], {})
