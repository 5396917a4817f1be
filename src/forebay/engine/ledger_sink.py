"""The ledger is filled here: a fold of the dead-letter topics, one batch in one transaction."""

from collections.abc import Collection, Mapping, Sequence

from forebay.core.records import Offset, Record
from forebay.core.sinks import SourcePartition
from forebay.engine.ledger_rows import LETTER_COLUMNS, LetterRow, StageName, read_record
from forebay.engine.standing import (
    STANDING_COLUMNS,
    TELLING_COLUMNS,
    Standing,
    stand,
    telling_from,
)
from forebay.state.port import Database, Row, Transaction
from forebay.state.positions import SinkPositions

LEDGER = "dead-letter-ledger"

# Names of columns are constants, so the statements may be put together from them.
_ALL_COLUMNS = (*LETTER_COLUMNS, *STANDING_COLUMNS)
_TELL = (
    f"INSERT INTO dead_letter_markers ({', '.join(TELLING_COLUMNS)}) "  # noqa: S608 - constants
    f"VALUES ({', '.join('?' * len(TELLING_COLUMNS))}) ON CONFLICT (letter_id, digest) DO NOTHING"
)
_TOLD = f"SELECT {', '.join(TELLING_COLUMNS)} FROM dead_letter_markers WHERE letter_id = ?"  # noqa: S608 - constants
_ENTER = (
    f"INSERT INTO dead_letters ({', '.join(_ALL_COLUMNS)}) "  # noqa: S608 - constants
    f"VALUES ({', '.join('?' * len(_ALL_COLUMNS))}) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _ALL_COLUMNS if name != "id")
)
_MOVE = (
    f"UPDATE dead_letters SET {', '.join(f'{name} = ?' for name in STANDING_COLUMNS)} "  # noqa: S608 - constants
    "WHERE id = ?"
)
_NEWEST = "SELECT letter_number, failed_ms, letter_digest FROM dead_letters WHERE id = ?"


class LedgerSink:
    """Rows are the records of dead-letter topics as they were read. Storing one again is harmless.

    `stages` says whose dead letters a topic holds.
    """

    def __init__(self, database: Database, stages: Mapping[str, StageName]) -> None:
        self._database = database
        self._stages = stages
        self._positions = SinkPositions(database, LEDGER)

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        return self._positions.read(partitions)

    def commit(
        self, rows: Sequence[Record], next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        read = [read_record(record, self._stages) for record in rows]
        letters: dict[str, LetterRow] = {}
        for telling, letter in read:
            if letter is not None:
                letters[telling.letter_id] = _newer(letter, letters.get(telling.letter_id))
        with self._database.transaction() as transaction:
            transaction.execute_many(_TELL, [telling.row for telling, _ in read])
            for id in dict.fromkeys(telling.letter_id for telling, _ in read):
                _settle(transaction, id, letters.get(id))
            self._positions.advance(transaction, next_offsets)

    def close(self) -> None:
        """The database is its owner's to close."""


def _settle(transaction: Transaction, id: str, letter: LetterRow | None) -> None:
    """Bring one entry to where everything told of it leaves it."""
    told = [telling_from(row) for row in transaction.execute(_TOLD, (id,))]
    standing = stand(told)
    if standing is None:
        return
    newest = transaction.execute(_NEWEST, (id,))
    if letter is not None and (not newest or _order(letter) > _stored_order(newest[0])):
        _enter(transaction, letter, standing)
    else:
        transaction.execute(_MOVE, (*standing.row, id))


def _enter(transaction: Transaction, letter: LetterRow, standing: Standing) -> None:
    values = [letter[name] for name in LETTER_COLUMNS]
    transaction.execute(_ENTER, (*values, *standing.row))


def _newer(letter: LetterRow, other: LetterRow | None) -> LetterRow:
    return letter if other is None or _order(letter) > _order(other) else other


def _order(letter: LetterRow) -> tuple[int, int, str]:
    return _stored_order((letter["letter_number"], letter["failed_ms"], letter["letter_digest"]))


def _stored_order(row: Row) -> tuple[int, int, str]:
    number, failed_ms, digest = row
    return int(number or 0), int(failed_ms or 0), str(digest)
