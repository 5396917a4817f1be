"""Places for files: folders, and containers of object stores."""

# ruff: noqa: PLC0415  imported where they are built, so that no command pays for what it leaves out

from pathlib import Path

from forebay.bootstrap.extras import needs_lakehouse
from forebay.identity import AzureSettings, storage_options
from forebay.lakehouse.files.port import Files
from forebay.lakehouse.files.routing import FALLBACK, FileRoutes
from forebay.observability.catalogue import Emit
from forebay.settings import Settings


def open_files(place: str, azure: AzureSettings, emit: Emit) -> Files:
    """`place` is a path, or the URL of an object store."""
    if "://" not in place:
        from forebay.lakehouse.files.local.files import LocalFiles

        return LocalFiles(Path(place), emit)
    with needs_lakehouse("Files in an object store need"):
        from forebay.lakehouse.files.objects.files import ObjectFiles
    return ObjectFiles(place, storage_options(azure, place))


def open_file_routes(settings: Settings, emit: Emit, *domains: str) -> FileRoutes:
    storage = settings.storage
    places = {
        domain: open_files(storage.files_of(domain), settings.azure, emit) for domain in domains
    }
    if storage.base_path is not None:
        places[FALLBACK] = open_files(storage.base_path, settings.azure, emit)
    return FileRoutes(places)
