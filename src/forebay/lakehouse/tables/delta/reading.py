"""A Delta table as people and audits read it."""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import orjson
import polars as pl

from forebay.core.errors import InvalidRequest
from forebay.lakehouse.tables.delta.applications import positions_among
from forebay.lakehouse.tables.delta.doubles import doubled_keys
from forebay.lakehouse.tables.delta.handle import KEY, TableHandle
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.log import applications, file_sizes, open_store
from forebay.lakehouse.tables.delta.troubles import told_when_reading
from forebay.lakehouse.tables.port import (
    Progress,
    TableColumn,
    TableDescription,
    TableFault,
    TableSummary,
    TableVersion,
)


class DeltaReader:
    def __init__(self, location: TableLocation) -> None:
        self._handle = TableHandle(location)
        self._location = location

    @property
    def location(self) -> str:
        return self._location.uri

    def summary(self) -> TableSummary:
        with told_when_reading(self._location):
            files = self._files()
            newest = self._handle.table.history(1)
        return TableSummary(
            version=self._handle.version,
            rows=int(files["num_records"].sum()),
            files=len(files),
            size=int(files["size_bytes"].sum()),
            changed_at_ms=newest[0].get("timestamp") if newest else None,
        )

    def describe(self) -> TableDescription:
        with told_when_reading(self._location):
            positions = positions_among(
                applications(open_store(self._location), self._handle.version).items()
            )
            columns = self._handle.schema().fields
            return TableDescription(
                summary=self.summary(),
                columns=tuple(TableColumn(f.name, _type_name(f.type), f.nullable) for f in columns),
                partition_by=self._handle.partition_by,
                key=self._declared_key(),
                partitions=len(self._handle.table.partitions()),
                positions=tuple(sorted(positions)),
            )

    def history(self, limit: int) -> list[TableVersion]:
        with told_when_reading(self._location):
            commits = self._handle.table.history(limit)
        return [
            TableVersion(
                version=commit["version"],
                at_ms=commit.get("timestamp", 0),
                operation=commit.get("operation", ""),
                detail=_told(commit.get("operationMetrics") or {}),
            )
            for commit in commits
        ]

    def verify(self, key: Sequence[str], progress: Progress) -> Iterator[TableFault]:
        with told_when_reading(self._location):
            wanted = tuple(key) or self._declared_key()
            self._check_columns(wanted)
            damaged = list(self._damaged_files(progress))
            yield from damaged
            if wanted and not damaged:
                for values, rows in doubled_keys(self._handle.scan(), wanted):
                    detail = f"{rows} rows have it, where one should"
                    yield TableFault("doubled_row", values, detail)

    def rows(
        self, columns: Sequence[str], partitions: Sequence[object] = (), batch: int = 50_000
    ) -> Iterator[list[tuple[Any, ...]]]:
        self._check_columns(columns)
        scan = self._handle.scan()
        if partitions:
            name = self._handle.partition_by[0]
            scan = scan.filter(pl.col(name).is_in(list(partitions)))
        with told_when_reading(self._location):
            for frame in scan.select(columns).collect_batches(
                chunk_size=batch, maintain_order=False, engine="streaming"
            ):
                yield frame.rows()

    def _damaged_files(self, progress: Progress) -> Iterator[TableFault]:
        files = self._files()
        there = file_sizes(open_store(self._location))
        named = zip(files["path"], files["size_bytes"], strict=True)
        for done, (path, size) in enumerate(named, start=1):
            progress(done)
            name = unquote(path)
            if name not in there:
                yield TableFault("missing_file", name, f"the log says {size:,} bytes")
            elif there[name] != size:
                detail = f"{there[name]:,} bytes, where the log says {size:,}"
                yield TableFault("wrong_size", name, detail)

    def _files(self) -> pl.DataFrame:
        actions = pl.DataFrame(self._handle.table.get_add_actions(flatten=True))
        return actions.select("path", "size_bytes", "num_records")

    def _declared_key(self) -> tuple[str, ...]:
        told = self._handle.table.metadata().configuration.get(KEY)
        return tuple(orjson.loads(told)) if told else ()

    def _check_columns(self, names: Sequence[str]) -> None:
        there = [field.name for field in self._handle.schema().fields]
        missing = [name for name in names if name not in there]
        if missing:
            raise InvalidRequest(
                f"Table {self._location} has no column {missing[0]}; it has {', '.join(there)}."
            )


def _type_name(delta_type: object) -> str:
    return str(getattr(delta_type, "type", delta_type))


def _told(metrics: dict[str, Any]) -> str:
    """The figures that are something."""
    return ", ".join(f"{name} {value}" for name, value in sorted(metrics.items()) if value)
