"""Delta tables: the sinks that fill them, and opening one to read it."""

# ruff: noqa: PLC0415  imported where they are used, so that nothing else pays for them

from collections.abc import Callable, Mapping
from typing import Any

from forebay.bootstrap.extras import needs_lakehouse
from forebay.core.sinks import Sink
from forebay.engine.payloads import column_type
from forebay.engine.stages import DeltaTable, SinkStage
from forebay.identity import AzureSettings, storage_options
from forebay.lakehouse.tables.port import Table
from forebay.observability.catalogue import Emit
from forebay.settings import Settings


def table_location(settings: Settings, table: DeltaTable) -> str:
    """Where the pipeline's declaration and the settings say that a table is."""
    return table.path or str(settings.tables_folder / table.name)


def table_locations(settings: Settings) -> dict[str, str]:
    """By name: those of the data folder that are there, and those that the settings name."""
    from forebay.domains.xact import tables as xact

    found = settings.tables_folder.glob("*/_delta_log")
    told = {
        xact.EVENTS: settings.xact.events_table,
        xact.ATTACHMENTS: settings.xact.attachments_table,
        xact.FAILED: settings.xact.failed_table,
    }
    here = {log.parent.name: str(log.parent) for log in found}
    return dict(sorted((here | {name: place for name, place in told.items() if place}).items()))


def open_table(location: str, azure: AzureSettings | None = None) -> Table:
    """Raises Unusable where there is none."""
    with needs_lakehouse("Reading Delta tables needs"):
        from forebay.lakehouse.tables.delta.location import TableLocation
        from forebay.lakehouse.tables.delta.reading import DeltaReader
    return DeltaReader(TableLocation(location, _options(location, azure)))


def open_delta_sink(
    name: str, stage: SinkStage, table: DeltaTable, settings: Settings, emit: Emit
) -> Sink[Any]:
    with needs_lakehouse(f"Sink {name} writes a Delta table, which needs"):
        from forebay.lakehouse.tables.delta.location import TableLocation
        from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
        from forebay.state.sql_values import Column

    columns = (Column(column, column_type(kind)) for column, kind in (stage.columns or {}).items())
    place = table_location(settings, table)
    declared = DeclaredTable(
        TableLocation(place, _options(place, settings.azure)),
        tuple(columns),
        tuple(stage.key),
        table.mode,
        table.partition_by,
    )
    return DeltaSink(name, declared, emit)


def _options(place: str, azure: AzureSettings | None) -> Callable[[], Mapping[str, str]]:
    """For an opening each: a token that was renewed is used at the next."""
    if "://" not in place:
        return dict
    return lambda: storage_options(azure or AzureSettings(), place)
