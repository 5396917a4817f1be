"""A table of somebody's own, filled in batches, with the position in the same transaction."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from forebay.core.errors import InvalidRequest, RowsRefused, Unusable
from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition
from forebay.state.port import Database, Transaction, Value
from forebay.state.positions import SinkPositions, is_stored_already
from forebay.state.sql_values import Column, quoted, sql_type, stored_value


class SqlTable(NamedTuple):
    """`key` are the columns that make a row one of a kind; without them every row is added."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()


class SqlSink:
    """The table is created where it is missing; of one that is there only its columns are used.

    With a key the newest row of a key stays. Without one nothing doubles either: a commit that
    reaches no further than what is stored stores nothing. Belongs to one thread.
    """

    def __init__(self, database: Database, sink: str, table: SqlTable) -> None:
        _check(table)
        self._database = database
        self._table = table
        self._positions = SinkPositions(database, sink)
        self._expected: dict[SourcePartition, Offset | None] = {}
        self._columns: tuple[Column, ...] = ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Declared columns that the table does not have; known once it was first asked."""
        return tuple(column.name for column in self._table.columns if column not in self._columns)

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        self.prepare()
        stored = self._positions.read(partitions)
        self._expected.update(stored)
        return stored

    def commit(
        self, rows: Sequence[Mapping[str, object]], next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        self.prepare()
        values = [self._values(row) for row in rows]
        with self._database.transaction() as transaction:
            stored = self._positions.read(next_offsets, transaction)
            if is_stored_already(stored, self._expected, next_offsets):
                return
            transaction.execute_many(self._insert(), values)
            self._positions.advance(transaction, next_offsets)
        self._expected.update(next_offsets)

    def prepare(self) -> None:
        """Create or check the table, once. Raises Unusable where a person must mend it."""
        if self._columns:
            return
        with self._database.transaction() as transaction:
            self._positions.prepare(transaction)
            transaction.execute(self._create())
        there = set(self._database.columns(self._table.name))
        self._check_key(there)
        self._columns = tuple(column for column in self._table.columns if column.name in there)
        try:
            self._check_insert()
        except Unusable:
            self._columns = ()
            raise

    def close(self) -> None:
        """The database is its owner's to close."""

    def _values(self, row: Mapping[str, object]) -> list[Value]:
        values = [stored_value(row.get(column.name), column) for column in self._columns]
        for column, value in zip(self._columns, values, strict=True):
            if value is None and column.name in self._table.key:
                raise RowsRefused(
                    f"A row for {self._table.name} has no {column.name}, which is part of the "
                    f"table's key. Nothing was stored. Give every row its key."
                )
        return values

    def _create(self) -> str:
        columns = [
            f"{quoted(column.name)} {sql_type(column)}"
            + (" NOT NULL" if column.name in self._table.key else "")
            for column in self._table.columns
        ]
        if self._table.key:
            columns.append(f"PRIMARY KEY ({_listed(self._table.key)})")
        return f"CREATE TABLE IF NOT EXISTS {quoted(self._table.name)} ({', '.join(columns)})"

    def _insert(self) -> str:
        names = [column.name for column in self._columns]
        marks = ", ".join("?" * len(names))
        table = quoted(self._table.name)
        insert = f"INSERT INTO {table} ({_listed(names)}) VALUES ({marks})"  # noqa: S608 - quoted
        if not self._table.key:
            return insert
        changes = [f"{quoted(n)} = excluded.{quoted(n)}" for n in names if n not in self._table.key]
        then = f"DO UPDATE SET {', '.join(changes)}" if changes else "DO NOTHING"
        return f"{insert} ON CONFLICT ({_listed(self._table.key)}) {then}"

    def _check_key(self, there: set[str]) -> None:
        missing = [name for name in self._table.key if name not in there]
        if missing or not there & {column.name for column in self._table.columns}:
            raise Unusable(
                f"Table {self._table.name} in {self._database.name} has no column "
                f"{', '.join(missing) or self._table.columns[0].name}; it has "
                f"{', '.join(sorted(there))}. Nothing was stored. Add the column, declare another "
                f"key, or choose another table."
            )

    def _check_insert(self) -> None:
        """Only the database knows whether its table has a unique index on the key."""
        if not self._table.key:
            return
        try:
            with self._database.transaction() as transaction:
                _explain(transaction, self._insert(), len(self._columns))
        except Unusable as error:
            raise Unusable(
                f"Table {self._table.name} in {self._database.name} cannot keep one row for each "
                f"{', '.join(self._table.key)}. Nothing was stored. Add a unique index on "
                f"({', '.join(self._table.key)}), declare another key, or choose another table."
            ) from error


def _explain(transaction: Transaction, statement: str, values: int) -> None:
    transaction.execute(f"EXPLAIN {statement}", [None] * values)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def _check(table: SqlTable) -> None:
    names = [column.name for column in table.columns]
    if not names or len(set(names)) < len(names) or not set(table.key) <= set(names):
        raise InvalidRequest(
            f"Table {table.name} needs columns, each once, its key among them; it was declared "
            f"with {', '.join(names) or 'none'} and the key {', '.join(table.key) or 'none'}."
        )
