"""What the client does not tell of a table's log: all positions, and the files as the store has
them.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any, TypeAlias

import obstore
import orjson
import polars as pl
from obstore.store import LocalStore, from_url

from forebay.lakehouse.tables.delta.durability import LOG, commit_name
from forebay.lakehouse.tables.delta.location import TableLocation

Store: TypeAlias = obstore.store.ObjectStore

_CLIENT_OPTIONS = {"allow_http", "connect_timeout", "proxy_url", "timeout"}
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\.parquet")


def open_store(location: TableLocation) -> Store:
    """Of the table's folder."""
    if location.folder is not None:
        return LocalStore(location.folder)
    options = dict(location.options())
    client = {name: options.pop(name) for name in _CLIENT_OPTIONS & options.keys()}
    make: Any = from_url  # which options there are depends on the store
    store: Store = make(location.uri, config=options, client_options=client)
    return store


def file_sizes(store: Store, prefix: str | None = None) -> dict[str, int]:
    return {entry["path"]: entry["size"] for page in obstore.list(store, prefix) for entry in page}


def applications(store: Store, version: int) -> dict[str, int]:
    """The newest number of each, of the newest checkpoint and what was committed since."""
    names = [path.rpartition("/")[2] for path in file_sizes(store, LOG)]
    checkpoints = [
        (int(found[1] or found[2]), name)
        for name in names
        if (found := _CHECKPOINT.fullmatch(name))
    ]
    newest = max((at for at, _ in checkpoints if at <= version), default=-1)
    told: dict[str, int] = {}
    for at, name in checkpoints:
        if at == newest:
            told.update(_in_checkpoint(_read(store, name)))
    for at in range(newest + 1, version + 1):
        told.update(_in_commit(_read(store, commit_name(at))))
    return told


def _read(store: Store, name: str) -> bytes:
    return bytes(obstore.get(store, f"{LOG}/{name}").bytes())


def _in_checkpoint(content: bytes) -> Iterator[tuple[str, int]]:
    told = pl.read_parquet(BytesIO(content), columns=["txn"]).drop_nulls().unnest("txn")
    for row in told.iter_rows(named=True):
        if row["appId"] is not None:
            yield row["appId"], row["version"]


def _in_commit(content: bytes) -> Iterator[tuple[str, int]]:
    for line in content.splitlines():
        if (told := orjson.loads(line).get("txn")) is not None:
            yield told["appId"], told["version"]
