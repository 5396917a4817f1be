"""The audit of a domain, with the places it looks at."""

# ruff: noqa: PLC0415  imported where they are used, so that no other command pays for a domain

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from forebay.bootstrap.files import open_file_routes
from forebay.bootstrap.tables import open_table, table_location
from forebay.broker.port import Broker
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import DeltaTable
from forebay.identity import AzureSettings
from forebay.lakehouse.tables.port import Table
from forebay.observability.catalogue import Emit
from forebay.operations.domain_audit import DomainAudit
from forebay.settings import Settings
from forebay.state.port import Database

LOG = "_delta_log"


@contextmanager
def open_xact_audit(
    settings: Settings, emit: Emit, broker: Broker, state: Database | None, *, now_ms: int
) -> Iterator[DomainAudit]:
    """`state` None: no ledger is here."""
    from forebay.bootstrap.xact import open_xact
    from forebay.domains.xact.audit import XactAudit
    from forebay.domains.xact.audit_places import AuditPlaces

    pipeline = open_xact(settings, emit)
    files = open_file_routes(settings, emit, pipeline.name)
    try:
        places = AuditPlaces(
            broker=broker,
            pipeline=pipeline,
            settings=settings.xact,
            tables=_tables(settings, pipeline),
            files=files.of(pipeline.name),
            state=state,
            now_ms=now_ms,
        )
        yield XactAudit(places)
    finally:
        asyncio.run(files.close())


def _tables(settings: Settings, pipeline: Pipeline) -> Mapping[str, Table | None]:
    targets = [stage.target for stage in pipeline.sink_stages]
    return {
        target.name: _table(table_location(settings, target), settings.azure)
        for target in targets
        if isinstance(target, DeltaTable)
    }


def _table(location: str, azure: AzureSettings) -> Table | None:
    """None for a folder without one. In an object store its sink has made it."""
    if "://" not in location and not (Path(location) / LOG).is_dir():
        return None
    return open_table(location, azure)
