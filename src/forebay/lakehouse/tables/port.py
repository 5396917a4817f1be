"""Tables as people and audits read them. Sinks write them through the port in core."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition

WriteMode: TypeAlias = Literal["append", "append_missing", "upsert"]
FaultKind: TypeAlias = Literal["missing_file", "wrong_size", "doubled_row"]
Progress: TypeAlias = Callable[[int], None]


class TableColumn(NamedTuple):
    name: str
    type: str
    nullable: bool


class StoredPosition(NamedTuple):
    """How far a sink has stored one partition of its source in this table."""

    sink: str
    source: SourcePartition
    next_offset: Offset


class TableVersion(NamedTuple):
    """One commit. `detail` is what its writer told of it."""

    version: int
    at_ms: int
    operation: str
    detail: str


class TableFault(NamedTuple):
    """`subject` is a file's path, or a key."""

    kind: FaultKind
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class TableSummary:
    """Figures of the newest version; `size` in bytes, `changed_at_ms` of its commit."""

    version: int
    rows: int
    files: int
    size: int
    changed_at_ms: int | None


@dataclass(frozen=True, slots=True)
class TableDescription:
    """`key` is what its sink declared, empty where nobody did."""

    summary: TableSummary
    columns: tuple[TableColumn, ...]
    partition_by: tuple[str, ...]
    key: tuple[str, ...]
    partitions: int
    positions: tuple[StoredPosition, ...]


class Table(Protocol):
    """A table that is there: opening one that is not raises Unusable. Every call is blocking.

    All but `verify` answer from the version that was the newest when it was opened.
    """

    @property
    def location(self) -> str: ...

    def summary(self) -> TableSummary: ...

    def describe(self) -> TableDescription: ...

    def history(self, limit: int) -> list[TableVersion]:
        """The newest first."""
        ...

    def verify(self, key: Sequence[str], progress: Progress) -> Iterator[TableFault]:
        """Files that the log names and the store does not have as it should; where there are
        none, doubled keys.

        Without `key` it is the one the table's sink declared. `progress` is told how many files
        were looked at.
        """
        ...

    def rows(
        self, columns: Sequence[str], partitions: Sequence[object] = (), batch: int = 50_000
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Batches of rows, in no order, in memory of about one file.

        `partitions` are values of the first partition column; none given means all of them.
        """
        ...
