"""Letting go of old records: first they become unreadable, then their rows are swept in pieces.

A piece of 5,000 rows holds the gate for about 10 ms; 100,000 rows at once would hold it for 120.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import apsw

from forebay.broker.embedded.schema import OFFSET_MASK, row_id
from forebay.broker.embedded.transaction import Transaction
from forebay.core.errors import OffsetOutOfRange
from forebay.core.records import Offset, TopicPartition

PIECE = 5_000

_SIZE = "coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0)"


@dataclass(frozen=True, slots=True)
class Chores:
    """What is due, found without writing: an idle broker writes nothing."""

    expiring: tuple[int, ...]
    sweepable: tuple[int, ...]
    doomed: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.expiring or self.sweepable or self.doomed)


def look(connection: apsw.Connection, now_ms: int) -> Chores:
    return Chores(
        expiring=_expiring(connection, now_ms),
        sweepable=_ids(connection, "SELECT id FROM partition WHERE swept < low"),
        doomed=_ids(connection, "SELECT partition FROM doomed"),
    )


def do_one_piece(transaction: Transaction, chores: Chores, now_ms: int) -> None:
    for partition_id in chores.doomed:
        if _sweep_rows(transaction, partition_id, OFFSET_MASK) < PIECE:
            transaction.write("DELETE FROM doomed WHERE partition = ?", partition_id)
        return
    for partition_id in chores.sweepable:
        _sweep(transaction, partition_id)
        return
    for partition_id in chores.expiring:
        _expire(transaction, partition_id, now_ms)
        return


def trim(
    transaction: Transaction,
    ids: Mapping[TopicPartition, int],
    before: Mapping[TopicPartition, Offset],
) -> dict[TopicPartition, Offset]:
    marks = {
        partition: transaction.read("SELECT low, next FROM partition WHERE id = ?", id)[0]
        for partition, id in ids.items()
    }
    for partition, offset in before.items():
        low, end = marks[partition]
        if not 0 <= offset <= end:
            raise OffsetOutOfRange(partition, offset, low, end)
    lows = {}
    for partition, offset in before.items():
        lows[partition] = max(offset, marks[partition][0])
        _raise_low(transaction, ids[partition], lows[partition])
    return lows


def _expiring(connection: apsw.Connection, now_ms: int) -> tuple[int, ...]:
    """Partitions whose first record is too old, or that hold too much."""
    found = []
    for id, low, end, held, retention_ms, retention_bytes in connection.execute(
        "SELECT partition.id, low, next, bytes, retention_ms, retention_bytes FROM partition "
        "JOIN topic ON topic.id = partition.topic WHERE low < next "
        "AND (retention_ms IS NOT NULL OR retention_bytes IS NOT NULL)"
    ):
        if retention_bytes is not None and held > retention_bytes:
            found.append(id)
        elif retention_ms is not None:
            first = connection.execute(
                "SELECT timestamp_ms FROM log WHERE id >= ? AND id < ? ORDER BY id LIMIT 1",
                (row_id(id, low), row_id(id, end)),
            ).get
            if first is not None and first < now_ms - retention_ms:
                found.append(id)
    return tuple(found)


def _expire(transaction: Transaction, partition_id: int, now_ms: int) -> None:
    """Raise the low watermark over at most one piece of what is too old or too much."""
    rows = transaction.read(
        "SELECT low, next, bytes, retention_ms, retention_bytes FROM partition "
        "JOIN topic ON topic.id = partition.topic WHERE partition.id = ?",
        partition_id,
    )
    if not rows:
        return
    low, end, held, retention_ms, retention_bytes = rows[0]
    cutoff_ms = -1 if retention_ms is None else now_ms - retention_ms
    excess = 0 if retention_bytes is None else held - retention_bytes
    for id, timestamp_ms, size in transaction.read(
        f"SELECT id, timestamp_ms, {_SIZE} FROM log WHERE id >= ? AND id < ? "  # noqa: S608 - a literal
        "ORDER BY id LIMIT ?",
        row_id(partition_id, low),
        row_id(partition_id, end),
        PIECE,
    ):
        if timestamp_ms >= cutoff_ms and excess <= 0:
            break
        low = (id & OFFSET_MASK) + 1
        excess -= size
    _raise_low(transaction, partition_id, low)


def _raise_low(transaction: Transaction, partition_id: int, low: Offset) -> None:
    transaction.write(
        "UPDATE partition SET low = ? WHERE id = ? AND low < ?", low, partition_id, low
    )


def _sweep(transaction: Transaction, partition_id: int) -> None:
    rows = transaction.read("SELECT low FROM partition WHERE id = ?", partition_id)
    if rows and _sweep_rows(transaction, partition_id, rows[0][0]) < PIECE:
        transaction.write("UPDATE partition SET swept = low WHERE id = ?", partition_id)


def _sweep_rows(transaction: Transaction, partition_id: int, end: Offset) -> int:
    """Delete one piece of the rows below `end`; says how many."""
    rows = transaction.read(
        f"SELECT id, {_SIZE} FROM log WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",  # noqa: S608 - a literal
        row_id(partition_id, 0),
        row_id(partition_id, end),
        PIECE,
    )
    if rows:
        transaction.write("DELETE FROM log WHERE id >= ? AND id <= ?", rows[0][0], rows[-1][0])
        transaction.write(
            "UPDATE partition SET bytes = max(0, bytes - ?) WHERE id = ?",
            sum(size for _, size in rows),
            partition_id,
        )
    return len(rows)


def _ids(connection: apsw.Connection, sql: str) -> tuple[int, ...]:
    return tuple(id for (id,) in connection.execute(sql))
