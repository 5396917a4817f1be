"""Small durable SQL, opened by the first who needs it."""

# ruff: noqa: PLC0415  imported where it is built, so that no command pays for what it leaves out

from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from threading import Lock

from forebay.state.port import Database


def open_database(path: Path) -> Database:
    """A database of Forebay's own, brought up to date."""
    from forebay.state.schema import migrate
    from forebay.state.sqlite.database import SqliteDatabase

    database = SqliteDatabase(path)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


class LazyState:
    """Closed with `closing`."""

    def __init__(self, path: Path, closing: ExitStack | AsyncExitStack) -> None:
        self._path = path
        self._closing = closing
        self._opening = Lock()
        self._database: Database | None = None

    def open(self) -> Database:
        with self._opening:
            if self._database is None:
                self._database = open_database(self._path)
                self._closing.callback(self._database.close)
            return self._database
