"""Places for files: folders, and containers of object stores."""

# ruff: noqa: PLC0415  imported where they are built, so that no command pays for what it leaves out

from collections.abc import Callable
from functools import partial
from pathlib import Path

from forebay.bootstrap.extras import needs_lakehouse
from forebay.bootstrap.first_use import FilesOnFirstUse, nobody
from forebay.identity import (
    AzureSettings,
    place_options,
    read_token_now,
    storage_options,
)
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
        from forebay.lakehouse.files.objects.store import BearerToken
    token_file = azure.token_file
    if token_file is None:
        return ObjectFiles(place, storage_options(azure, place))
    return ObjectFiles(
        place, place_options(azure, place), lambda: BearerToken(*read_token_now(token_file))
    )


def open_file_routes(
    settings: Settings, emit: Emit, *domains: str, opened: Callable[[Files], None] = nobody
) -> FileRoutes:
    """Each is opened when it is first used, and `opened` is told of it."""

    def place(name: str) -> Files:
        return FilesOnFirstUse(name, partial(open_files, name, settings.azure, emit), opened)

    storage = settings.storage
    places = {domain: place(storage.files_of(domain)) for domain in domains}
    if storage.base_path is not None:
        places[FALLBACK] = place(storage.base_path)
    return FileRoutes(places)
