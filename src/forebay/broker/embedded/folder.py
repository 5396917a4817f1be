import ctypes
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import apsw

from forebay.broker.embedded.faults import translate
from forebay.broker.embedded.gate import Gate
from forebay.broker.embedded.guard import check_file_system, check_sqlite
from forebay.broker.embedded.schema import APPLICATION_ID, PAGE_BYTES, SCHEMA_VERSION, TABLES
from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import AccessDenied, Damaged, Unusable

CHECKPOINT_PAGES = 2000
WAL_BYTES = (CHECKPOINT_PAGES + 100) * PAGE_BYTES
BUSY_MS = 5000


class Folder:
    """A broker's place on disk: one file of data, one gate, bells and signs of life."""

    def __init__(self, path: Path, vfs: str = "") -> None:
        self.path = path.absolute()
        self.file = self.path / "broker.db"
        self.wal = self.path / "broker.db-wal"
        self.gate = self.path / "gate"
        self.bells = self.path / "bells"
        self.members = self.path / "members"
        self._vfs = vfs

    def prepare(self, settings: EmbeddedSettings) -> None:
        """Make the folder and its file unless they exist; refuse what cannot be trusted."""
        check_sqlite()
        self._make_folders()
        check_file_system(self.path)
        gate = Gate(self.gate)
        try:
            with gate:
                self._create_or_check(settings)
                self._fill_wal()
        except (apsw.Error, OSError) as error:
            raise translate(error, self.file) from error
        finally:
            gate.close()

    def _fill_wal(self) -> None:
        """Give the WAL its size beforehand: an fsync of a file that grows costs twice as much.

        Zeros after the last frame mean nothing to SQLite. It holds no locks on this file, so
        opening it here drops none.
        """
        descriptor = os.open(self.wal, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size < WAL_BYTES:
                os.pwrite(descriptor, bytes(WAL_BYTES - size), size)
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def connect(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        connection = apsw.Connection(str(self.file), flags=flags, vfs=self._vfs or None)
        connection.set_busy_timeout(BUSY_MS)
        _keep_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        return connection

    def read_identity(self) -> str:
        connection = self.connect()
        try:
            return str(connection.execute("SELECT value FROM meta WHERE name = 'identity'").get)
        finally:
            connection.close()

    def _make_folders(self) -> None:
        try:
            for folder in (self.path, self.bells, self.members):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.gate, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise AccessDenied(
                f"The broker's folder {self.path} cannot be used ({error.strerror}). Nothing was "
                f"changed. Choose a folder that this user may write to, with --dir."
            ) from error

    def _make_file(self) -> None:
        """For its owner alone; SQLite gives its other files the same rights, and tells of errors.

        Only inside the gate and only if it is new: closing it would drop the locks of others.
        """
        with suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(self.file, flags, 0o600))

    def _create_or_check(self, settings: EmbeddedSettings) -> None:
        self._make_file()
        connection = self.connect()
        try:
            if self._is_empty(connection):
                _create(connection, settings)
            self._check_kind(connection)
            self._check_settings(connection, settings)
        finally:
            connection.close()

    def _is_empty(self, connection: apsw.Connection) -> bool:
        return not connection.execute("SELECT count(*) FROM sqlite_schema").get

    def _check_kind(self, connection: apsw.Connection) -> None:
        if connection.execute("PRAGMA application_id").get != APPLICATION_ID:
            raise Damaged(
                f"{self.file} is another program's database. Nothing was changed. Choose another "
                f"folder, with --dir."
            )
        version = connection.execute("PRAGMA user_version").get
        if version != SCHEMA_VERSION:
            age, what = (
                ("newer", "a newer Forebay")
                if version > SCHEMA_VERSION
                else ("older", "the Forebay that wrote it")
            )
            raise Unusable(
                f"{self.file} has the {age} layout {version}; this Forebay reads layout "
                f"{SCHEMA_VERSION}. Nothing was changed. Open it with {what}, or choose another "
                f"folder."
            )

    def _check_settings(self, connection: apsw.Connection, settings: EmbeddedSettings) -> None:
        stored = connection.execute("SELECT value FROM meta WHERE name = 'record_bytes_max'").get
        if stored != settings.record_bytes_max:
            raise Unusable(
                f"The broker in {self.path} was created with record_bytes_max = {stored}; this "
                f"process asks for {settings.record_bytes_max}. Nothing was changed. Use the "
                f"same value, or another folder."
            )


def _keep_wal(connection: apsw.Connection) -> None:
    """The last connection to close must not delete the WAL: it may be wrong about being last."""
    on = ctypes.c_int(1)
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(on))


def _create(connection: apsw.Connection, settings: EmbeddedSettings) -> None:
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    with connection:
        connection.execute(TABLES)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.executemany(
            "INSERT INTO meta (name, value) VALUES (?, ?)",
            [
                ("identity", uuid4().hex),
                ("record_bytes_max", settings.record_bytes_max),
                ("topics_version", 0),
            ],
        )
