"""One open table: what its newest version holds, and commits on top of it.

A commit through a handle conflicts with whatever of the same position was committed since the
handle was opened. That is the fence: the client itself does not look at positions.
"""

from collections.abc import Mapping, Sequence

import orjson
import polars as pl
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake

from forebay.lakehouse.tables.delta.durability import (
    make_durable,
    make_what_is_left_durable,
    set_torn_commits_aside,
)
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.troubles import told_when_reading, told_when_writing

APPENDS_TRIED_MAX = 100
CHECKPOINT_COMMITS = 25
KEY = "forebay.key"

Positions = Mapping[str, int]


class TableHandle:
    """Belongs to one thread. Grows slower with each commit: open another one now and then."""

    def __init__(self, location: TableLocation) -> None:
        self.location = location
        with told_when_reading(location):
            self.table = DeltaTable(location.place, storage_options=dict(location.options()))
        self.commits = 0

    @property
    def version(self) -> int:
        return self.table.version()

    @property
    def partition_by(self) -> tuple[str, ...]:
        return tuple(self.table.metadata().partition_columns)

    def schema(self) -> Schema:
        return self.table.schema()

    def position(self, application: str) -> int | None:
        with told_when_reading(self.location):
            return self.table.transaction_version(application)

    def scan(self) -> pl.LazyFrame:
        return pl.scan_delta(self.table)

    def append(self, frame: pl.DataFrame, positions: Positions) -> None:
        """A frame without rows stores the positions alone."""
        before = self.version
        with told_when_writing(self.location):
            properties = _properties(positions, tries=APPENDS_TRIED_MAX)
            write_deltalake(self.table, frame, mode="append", commit_properties=properties)
        self._committed(before)

    def replace(self, frame: pl.DataFrame, matching: str, positions: Positions) -> bool:
        """Rows that match are replaced, the others added. False: nothing was to do, and neither
        rows nor positions were stored.
        """
        before = self.version
        with told_when_writing(self.location):
            merger = self.table.merge(
                frame,
                matching,
                source_alias="s",
                target_alias="t",
                streamed_exec=False,
                commit_properties=_properties(positions),
            )
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
        if self.version == before:
            return False
        self._committed(before)
        return True

    def make_durable_since(self, version: int | None) -> None:
        """What was committed after it, by whomever: a process may have died before it did that.

        None: nobody knows since when, so as far back as a checkpoint may be missing.
        """
        first = max(0, self.version - CHECKPOINT_COMMITS) if version is None else version + 1
        if (folder := self.location.folder) is not None:
            make_what_is_left_durable(folder, range(first, self.version + 1))

    def _committed(self, before: int) -> None:
        """Somebody else's commits may stand between."""
        self.commits += 1
        if (folder := self.location.folder) is not None:
            make_what_is_left_durable(folder, range(before + 1, self.version))
            make_durable(folder, self.version)


def create_where_missing(
    location: TableLocation, schema: Schema, partition_by: Sequence[str], key: Sequence[str]
) -> None:
    """Nothing is changed of a table that is there."""
    options = dict(location.options())
    with told_when_reading(location):
        if DeltaTable.is_deltatable(location.place, storage_options=options):
            return
        DeltaTable.create(
            location.place,
            schema,
            mode="ignore",
            partition_by=list(partition_by),
            configuration=_configuration(key),
            storage_options=options,
            raise_if_key_not_exists=False,
        )
    if (folder := location.folder) is not None:
        make_durable(folder, 0)


def mend_after_a_power_cut(location: TableLocation) -> list[int]:
    """The versions that were set aside. An object store has none: it acknowledges what is whole."""
    if location.folder is None:
        return []
    with told_when_reading(location):
        return set_torn_commits_aside(location.folder)


def _configuration(key: Sequence[str]) -> dict[str, str | None]:
    told: dict[str, str | None] = {"delta.checkpointInterval": str(CHECKPOINT_COMMITS)}
    if key:
        told[KEY] = orjson.dumps(list(key)).decode()
    return told


def _properties(positions: Positions, tries: int | None = None) -> CommitProperties:
    transactions = [Transaction(name, at) for name, at in positions.items()]
    return CommitProperties(app_transactions=transactions, max_commit_retries=tries)
