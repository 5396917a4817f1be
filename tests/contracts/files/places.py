"""The places under test: how to open each, as this or as another process, and how to look in."""

import asyncio
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from obstore.store import AzureStore

from forebay.core.probe import Probe
from forebay.lakehouse.files.local import LocalFiles
from forebay.lakehouse.files.objects import ObjectFiles
from forebay.lakehouse.files.port import Files

ALL = ("local", "azurite")


def case(number: int, places: tuple[str, ...] = ALL):
    """One case of the contract, once for each place that must pass it."""
    return pytest.mark.parametrize(
        "place",
        [pytest.param(place, id=f"file-{number:02d}-{place}") for place in places],
        indirect=True,
    )


@dataclass(frozen=True)
class Place:
    """`address` and `options` open it in another process; `look` and `plant` go past the port."""

    kind: str
    address: str
    options: dict[str, str]
    look: Callable[[str], bytes | None]
    plant: Callable[[str, bytes], None]

    def open(self, probe: Probe | None = None) -> Files:
        return open_files(self.kind, self.address, self.options, probe)


def open_files(
    kind: str, address: str, options: dict[str, str], probe: Probe | None = None
) -> Files:
    if kind == "local":
        return LocalFiles(Path(address), probe=probe)
    return ObjectFiles(address, options, probe=probe)


def local_place(folder: Path) -> Place:
    def look(name: str) -> bytes | None:
        path = folder / name
        return path.read_bytes() if path.exists() else None

    def plant(name: str, content: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return Place("local", str(folder), {}, look, plant)


def azurite_place(address: str, options: dict[str, str]) -> Place:
    config = {name: value for name, value in options.items() if name != "allow_http"}
    store = AzureStore.from_url(address, config=config, client_options={"allow_http": True})

    def look(name: str) -> bytes | None:
        try:
            return bytes(obstore.get(store, name).bytes())
        except FileNotFoundError:
            return None

    def plant(name: str, content: bytes) -> None:
        obstore.put(store, name, content)

    return Place("azurite", address, options, look, plant)


@dataclass(frozen=True)
class Source:
    """A finished file, as the cache holds it, and what is promised of it."""

    path: Path
    content: bytes

    @property
    def promised(self) -> dict[str, object]:
        return {"size": len(self.content), "sha256": hashlib.sha256(self.content).hexdigest()}


def source(folder: Path, content: bytes) -> Source:
    path = folder / f"{os.urandom(8).hex()}.cached"
    path.touch(mode=0o600)
    path.write_bytes(content)
    return Source(path, content)


def put(files: Files, given: Source, name: str) -> None:
    asyncio.run(files.put(given.path, name, **given.promised))


def holds(files: Files, given: Source, name: str) -> bool:
    return asyncio.run(files.holds(name, **given.promised))
