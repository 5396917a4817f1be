import fcntl
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from forebay.core.errors import AccessDenied, Closed, ForebayError, InvalidRequest, Unusable
from forebay.state.port import Row, Value
from forebay.state.sqlite.faults import translated, translated_commit

BUSY_MS = 5_000


class SqliteTransaction:
    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._doomed_by: ForebayError | None = None
        self._is_over = False

    def execute(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        with self._statement():
            return list(self._connection.execute(sql, values))

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        with self._statement():
            self._connection.executemany(sql, rows)

    def commit(self) -> None:
        if self._doomed_by is not None:
            raise self._doomed_by
        with translated_commit(self._path):
            self._connection.execute("COMMIT")

    def end(self) -> None:
        """What is not committed is undone."""
        self._is_over = True
        if self._connection.in_transaction:
            with suppress(apsw.Error):
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _statement(self) -> Iterator[None]:
        if self._is_over:
            raise Closed(f"This transaction on {self._path} is over. Begin another.")
        try:
            with translated(self._path):
                yield
        except ForebayError as error:
            self._doomed_by = error
            raise


class SqliteDatabase:
    """One connection writes and one reads, each behind a lock, so no reader waits for a commit.

    Any number of processes may have the file open; each waits up to five seconds for another's
    transaction. The file is its user's alone: it may hold whole records.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._writing_thread: int | None = None
        self._is_closed = False
        _make_file(self._path)
        with translated(self._path), _alone_in(self._path.parent):
            self._writer = _connect(self._path)
            self._reader = _connect(self._path)
        self._reader.execute("PRAGMA query_only = ON")

    @property
    def name(self) -> str:
        return str(self._path)

    @contextmanager
    def transaction(self) -> Iterator[SqliteTransaction]:
        with self._turn_to_write():
            with translated(self._path):
                self._writer.execute("BEGIN IMMEDIATE")
            transaction = SqliteTransaction(self._writer, self._path)
            try:
                yield transaction
                transaction.commit()
            finally:
                transaction.end()

    def read(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        with self._reading:
            self._check_open()
            with translated(self._path):
                return list(self._reader.execute(sql, values))

    def columns(self, table: str) -> list[str]:
        return [
            str(name) for (name,) in self.read("SELECT name FROM pragma_table_info(?)", (table,))
        ]

    def close(self) -> None:
        with suppress(Closed), self._turn_to_write(), self._reading, translated(self._path):
            self._is_closed = True
            self._reader.close()
            self._writer.close()

    @contextmanager
    def _turn_to_write(self) -> Iterator[None]:
        if self._writing_thread == threading.get_ident():
            raise InvalidRequest(
                f"This thread is inside a transaction on {self._path}, and transactions are not "
                f"nested. End the first one before."
            )
        with self._writing:
            self._check_open()
            self._writing_thread = threading.get_ident()
            try:
                yield
            finally:
                self._writing_thread = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed(f"{self._path} was closed by its owner. Open it again.")


def _make_file(path: Path) -> None:
    """Only where it is new: closing a file that is there would drop SQLite's locks on it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not path.parent.is_dir():
            raise _no_folder(path, "a file of that name is in its way") from None
    except OSError as error:
        raise _no_folder(path, error.strerror or str(error)) from error


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """SQLite does not wait for another process while it begins a write-ahead log; this does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _no_folder(path: Path, why: str) -> AccessDenied:
    return AccessDenied(
        f"{path} cannot be created ({why}). Nothing was changed. Choose a folder that this user "
        f"may write to."
    )


def _connect(path: Path) -> apsw.Connection:
    with translated(path):
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(str(path), flags=flags)
        connection.set_busy_timeout(BUSY_MS)
        mode = connection.execute("PRAGMA journal_mode = WAL").get
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = OFF")
    if mode != "wal":
        raise Unusable(
            f"The file system of {path} cannot keep a write-ahead log (SQLite answers {mode}). "
            f"Nothing was stored. Choose a folder on a local disk."
        )
    return connection
