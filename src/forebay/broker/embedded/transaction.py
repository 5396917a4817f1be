from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import apsw

from forebay.broker.embedded.schema import OFFSET_BITS
from forebay.core.errors import UnknownTopic
from forebay.core.records import Offset

Value: TypeAlias = int | float | str | bytes | None

_INSERT = "INSERT INTO log (id, timestamp_ms, key, value, headers) VALUES (?, ?, ?, ?, ?)"


# A record made ready by its sender, so that the writer only has to place it: partition id,
# timestamp_ms, key, value, headers, size. A bare tuple: one is built for every record sent.
Row: TypeAlias = tuple[int, int, bytes | None, bytes | None, bytes | None, int]


@dataclass(slots=True)
class _Tail:
    topic_id: int
    next: Offset
    bytes: int
    largest: int


class Transaction:
    """One write transaction that carries the work of many callers.

    Whoever works in it looks first and writes after: an error raised before the first write
    concerns that caller alone, one raised later would spoil everybody's.
    """

    def __init__(self, connection: apsw.Connection, gaps: Random | None = None) -> None:
        self._connection = connection
        self._gaps = gaps
        self._tails: dict[int, _Tail] = {}
        self._rows: list[tuple[int, int, bytes | None, bytes | None, bytes | None]] = []
        self.writes = 0
        self.topics_version: int | None = None
        self.topics: set[int] = set()
        self.groups: set[int] = set()

    def read(self, sql: str, *arguments: Value) -> list[tuple[Any, ...]]:
        self.flush()
        return list(self._connection.execute(sql, arguments))

    def value(self, sql: str, *arguments: Value) -> Any:
        rows = self.read(sql, *arguments)
        return rows[0][0] if rows else None

    def write(self, sql: str, *arguments: Value) -> int:
        """Rows changed."""
        self.flush()
        self.writes += 1
        self._connection.execute(sql, arguments)
        return self._connection.changes()

    def write_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self.flush()
        self.writes += 1
        self._connection.executemany(sql, rows)

    def append(self, rows: Sequence[Row]) -> list[Offset]:
        """Place records behind their partitions' ends; stored at the next `flush`."""
        tails = {id: self._tail(id) for id in {row[0] for row in rows}}
        self.writes += 1
        offsets = []
        for partition_id, timestamp_ms, key, value, headers, size in rows:
            tail = tails[partition_id]
            offset = tail.next if self._gaps is None else tail.next + _gap(self._gaps)
            tail.next = offset + 1
            tail.bytes += size
            if size > tail.largest:  # noqa: PLR1730 - max() costs a call per record
                tail.largest = size
            self._rows.append(
                (partition_id << OFFSET_BITS | offset, timestamp_ms, key, value, headers)
            )
            offsets.append(offset)
        return offsets

    def flush(self) -> None:
        if not self._rows:
            return
        rows, tails = self._rows, self._tails
        self._rows, self._tails = [], {}
        self._connection.executemany(_INSERT, rows)
        self._connection.executemany(
            "UPDATE partition SET next = ?, bytes = ?, largest = ? WHERE id = ?",
            [(tail.next, tail.bytes, tail.largest, id) for id, tail in tails.items()],
        )
        self.topics.update(tail.topic_id for tail in tails.values())

    def _tail(self, partition_id: int) -> _Tail:
        tail = self._tails.get(partition_id)
        if tail is None:
            tail = self._tails[partition_id] = self._load_tail(partition_id)
        return tail

    def _load_tail(self, partition_id: int) -> _Tail:
        row = self._connection.execute(
            "SELECT topic, next, bytes, largest FROM partition WHERE id = ?", (partition_id,)
        ).fetchone()
        if row is None:
            raise UnknownTopic(
                "The topic was deleted while records were on their way to it. They were not "
                "stored. Create the topic again, or send elsewhere."
            )
        return _Tail(*row)


def _gap(random: Random) -> int:
    """Offsets that no record gets, as Kafka's transaction markers take them. For tests."""
    return random.choice((0, 0, 0, 1, 2, 5))
