"""What Forebay asks of a small durable SQL database. Plain SQL that SQLite and PostgreSQL share.

Parameters are written `?`, types TEXT, BIGINT, DOUBLE PRECISION and BLOB: where a database calls
one of them otherwise, its adapter translates. Values are int, float, str, bytes or None.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[Value, ...]


class Transaction(Protocol):
    """A statement that raised dooms its transaction: the block raises too, whatever it does."""

    def execute(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """The rows it gives. Without values it may be several statements, separated by `;`.

        Raises RowsRefused where a value breaks a type or constraint.
        """
        ...

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """The same statement for each row. Raises RowsRefused."""
        ...


class Database(Protocol):
    """May be used from any thread, one call at a time each; transactions wait for one another."""

    @property
    def name(self) -> str:
        """What a message calls it: its file, or its address without credentials."""
        ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Durable when the block ends, undone when it raises. Blocking. Not nested.

        Raises Unavailable where it may pass (busy, disk full), Unusable where a person must act.
        OutcomeUnknown, which is Unavailable, says that the block may be durable after all.
        """
        ...

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """One snapshot of what is durable. Blocking. Idempotent. Raises Unavailable and Unusable.

        Inside a transaction's block it does not see what that transaction wrote.
        """
        ...

    def columns(self, table: str) -> list[str]:
        """In their order; [] where there is no such table. Otherwise like `read`."""
        ...

    def close(self) -> None:
        """May repeat."""
        ...
