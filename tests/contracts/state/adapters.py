"""The databases under test: how to open each, how to break it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forebay.state.port import Database
from forebay.state.sqlite.database import SqliteDatabase

ALL = ("sqlite",)


@dataclass(frozen=True)
class Store:
    """`open` opens it once more, as another process would; `damage` ruins it while it is closed."""

    kind: str
    place: str
    open: Callable[[], Database]
    damage: Callable[[], None]


def store(kind: str, place: str) -> Store:
    return {"sqlite": _sqlite}[kind](place)


def _sqlite(place: str) -> Store:
    path = Path(place) / "state.db"
    return Store("sqlite", place, lambda: SqliteDatabase(path), lambda: _overwrite(path))


def _overwrite(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"these are somebody's notes, not a database" * 1000)
