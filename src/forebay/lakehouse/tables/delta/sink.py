"""A Delta table that is filled in batches, with the position in the same commit."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from deltalake.exceptions import CommitFailedError

from forebay.core.errors import InvalidRequest, Unavailable
from forebay.core.records import Offset
from forebay.core.sinks import SourcePartition
from forebay.lakehouse.tables.delta.applications import (
    NOTHING_YET,
    application_of,
    offset_in,
)
from forebay.lakehouse.tables.delta.batches import BatchWriter
from forebay.lakehouse.tables.delta.column_types import LiveColumn, live_columns, schema_of
from forebay.lakehouse.tables.delta.frames import check_partitions, frame_of
from forebay.lakehouse.tables.delta.handle import (
    TableHandle,
    create_where_missing,
    mend_after_a_power_cut,
)
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.remembered_keys import RememberedKeys
from forebay.lakehouse.tables.delta.troubles import reason_in
from forebay.lakehouse.tables.port import WriteMode
from forebay.observability.catalogue import Emit, silent
from forebay.state.positions import is_stored_already
from forebay.state.sql_values import Column

COMMITS_ON_ONE_HANDLE = 25
CONFLICTS_MAX = 20


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """`partition_by` is of a new table; one that is there stays partitioned as it is."""

    location: TableLocation
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    mode: WriteMode = "append"
    partition_by: tuple[str, ...] = ()


class DeltaSink:
    """The table is created where it is missing; of one that is there only its columns are used.

    append keeps every row, append_missing the first of each key, upsert the newest: a key is one
    within its partition. Nothing doubles: a commit that reaches no further than what is stored
    stores nothing. Used by one thread at a time.
    """

    def __init__(self, sink: str, table: DeclaredTable, emit: Emit = silent) -> None:
        _check(table)
        self._sink = sink
        self._table = table
        self._emit = emit
        self._remembered = RememberedKeys()
        self._writer = BatchWriter(table.mode, table.key, self._remembered)
        self._expected: dict[SourcePartition, Offset | None] = {}
        self._stored: dict[SourcePartition, Offset | None] = {}
        self._handle: TableHandle | None = None
        self._columns: tuple[LiveColumn, ...] = ()
        self._version: int | None = None
        self._is_prepared = False

    @property
    def left_out(self) -> tuple[str, ...]:
        """Declared columns that the table does not have; known once it was first asked."""
        there = {column.name for column in self._columns}
        return tuple(c.name for c in self._table.columns if c.name not in there)

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        self._drop_handle()
        stored = self._read_positions(self._open(), partitions)
        self._expected.update(stored)
        return stored

    def commit(
        self, rows: Sequence[Mapping[str, object]], next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        reason = ""
        for _ in range(CONFLICTS_MAX):
            try:
                self._commit(rows, next_offsets)
            except CommitFailedError as error:
                self._drop_handle()
                reason = reason_in(error)
                continue
            except Exception:
                self._drop_handle()
                raise
            return
        raise Unavailable(
            f"Table {self._table.location} has refused a commit {CONFLICTS_MAX} times "
            f"({reason}). The batch is held and tried again. Let one process write it."
        )

    def close(self) -> None:
        self._drop_handle()

    def _commit(
        self, rows: Sequence[Mapping[str, object]], next_offsets: Mapping[SourcePartition, Offset]
    ) -> None:
        handle = self._open()
        frame = frame_of(rows, self._columns, self._never_null(handle))
        check_partitions(frame, handle.partition_by)
        stored = self._read_positions(handle, next_offsets)
        if is_stored_already(stored, self._expected, next_offsets):
            self._expected.update(stored)
            return
        commits, version = handle.commits, handle.version
        self._writer.write(handle, frame, self._positions(stored), self._positions(next_offsets))
        self._stored.update(next_offsets)
        self._expected.update(next_offsets)
        self._version = handle.version
        if handle.version - version != handle.commits - commits:
            self._remembered.forget()
        if handle.commits >= COMMITS_ON_ONE_HANDLE:
            self._drop_handle()

    def _open(self) -> TableHandle:
        if self._handle is None:
            self._prepare()
            handle = self._open_handle()
            self._columns = live_columns(
                str(self._table.location),
                handle.schema(),
                self._table.columns,
                tuple(dict.fromkeys([*self._table.key, *handle.partition_by])),
            )
            if handle.version != self._version:
                self._remembered.forget()
                handle.make_durable_since(self._version)
            self._version = handle.version
            self._stored.clear()
            self._handle = handle
        return self._handle

    def _open_handle(self) -> TableHandle:
        return TableHandle(self._table.location)

    def _prepare(self) -> None:
        """Once: a table that is gone later is not made again, for its rows would be."""
        if self._is_prepared:
            return
        table = self._table
        for version in mend_after_a_power_cut(table.location):
            self._emit("table.commit_set_aside", table=str(table.location), version=version)
        create_where_missing(
            table.location, schema_of(table.columns), table.partition_by, table.key
        )
        self._is_prepared = True

    def _drop_handle(self) -> None:
        self._handle = None

    def _read_positions(
        self, handle: TableHandle, partitions: Collection[SourcePartition]
    ) -> dict[SourcePartition, Offset | None]:
        for source in partitions:
            if source not in self._stored:
                number = handle.position(application_of(self._sink, source))
                self._stored[source] = offset_in(number)
        return {source: self._stored[source] for source in partitions}

    def _positions(self, offsets: Mapping[SourcePartition, Offset | None]) -> dict[str, int]:
        return {
            application_of(self._sink, source): NOTHING_YET if offset is None else offset
            for source, offset in offsets.items()
        }

    def _never_null(self, handle: TableHandle) -> tuple[str, ...]:
        """The further columns of a key may be: an event without attachments is one of a kind."""
        return (*self._table.key[:1], *handle.partition_by)


def _check(table: DeclaredTable) -> None:
    names = [column.name for column in table.columns]
    needed = {*table.key, *table.partition_by}
    if not names or len(set(names)) < len(names) or not needed <= set(names):
        raise InvalidRequest(
            f"Table {table.location} needs columns, each once, its key and what it is partitioned "
            f"by among them; it was declared with {', '.join(names) or 'none'} and the key "
            f"{', '.join(table.key) or 'none'}."
        )
