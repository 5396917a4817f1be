import errno
import stat
from pathlib import Path

import apsw
import pytest

from forebay.core.errors import (
    AccessDenied,
    Damaged,
    Full,
    OutcomeUnknown,
    RowsRefused,
    Unavailable,
    Unusable,
)
from forebay.state.sqlite.database import SqliteDatabase
from forebay.state.sqlite.faults import translate, translated_commit

FILE = Path("state.db")


@pytest.fixture
def database(tmp_path):
    database = SqliteDatabase(tmp_path / "state.db")
    with database.transaction() as transaction:
        transaction.execute("CREATE TABLE kept (it TEXT)")
    yield database
    database.close()


def test_a_folder_that_does_not_exist_is_made_and_the_file_is_its_user_s_alone(tmp_path):
    path = tmp_path / "a" / "b" / "state.db"
    SqliteDatabase(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_that_is_a_file_is_told_with_its_name(tmp_path):
    (tmp_path / "state").write_text("a file")
    with pytest.raises(AccessDenied, match=r"state/state\.db cannot be created"):
        SqliteDatabase(tmp_path / "state" / "state.db")


def test_a_file_that_is_a_folder_is_told_with_its_name(tmp_path):
    (tmp_path / "state.db").mkdir()
    with pytest.raises(AccessDenied, match=r"state\.db cannot be opened"):
        SqliteDatabase(tmp_path / "state.db")


def test_every_commit_waits_for_the_disk(database):
    assert database._writer.execute("PRAGMA synchronous").get == 2
    assert database._writer.execute("PRAGMA journal_mode").get == "wal"


def test_a_file_that_another_program_holds_may_pass(database, tmp_path):
    database._writer.set_busy_timeout(0)
    other = apsw.Connection(str(tmp_path / "state.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked by another program"), database.transaction():
        pass
    other.execute("ROLLBACK")
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO kept VALUES ('after')")
    other.close()


def test_a_full_disk_stores_nothing_of_the_transaction_and_all_is_well_after_it(database):
    database._writer.execute("PRAGMA max_page_count = 10")
    with pytest.raises(Full, match="disk of"), database.transaction() as transaction:
        transaction.execute_many("INSERT INTO kept VALUES (?)", [("x" * 10_000,)] * 10)
    assert database.read("SELECT count(*) FROM kept") == [(0,)]
    database._writer.execute("PRAGMA max_page_count = 1000")
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO kept VALUES ('after')")
    assert database.read("SELECT it FROM kept") == [("after",)]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (apsw.ConstraintError("NOT NULL constraint failed"), RowsRefused),
        (apsw.MismatchError("datatype mismatch"), RowsRefused),
        (apsw.TooBigError("string or blob too big"), RowsRefused),
        (apsw.FullError("database or disk is full"), Full),
        (OSError(errno.ENOSPC, "No space left on device"), Full),
        (apsw.BusyError("database is locked"), Unavailable),
        (apsw.LockedError("table is locked"), Unavailable),
        (apsw.IOError("disk I/O error"), Unavailable),
        (apsw.NotADBError("file is not a database"), Damaged),
        (apsw.CorruptError("malformed"), Damaged),
        (apsw.CantOpenError("unable to open"), AccessDenied),
        (apsw.ReadOnlyError("readonly"), AccessDenied),
        (OSError(errno.EACCES, "Permission denied"), AccessDenied),
        (apsw.SQLError("no such table"), Unusable),
        (apsw.InternalError("?"), Unusable),
    ],
)
def test_every_error_becomes_what_its_caller_does_about_it(error, kind):
    told = translate(error, FILE)
    assert type(told) is kind
    assert "state.db" in str(told)
    assert str(told).endswith((".", ".)", "?)."))


def test_a_commit_that_failed_on_the_disk_may_have_happened():
    with pytest.raises(OutcomeUnknown, match="may or may not"), translated_commit(FILE):
        raise apsw.IOError("disk I/O error")


def test_a_commit_on_a_full_disk_has_not_happened():
    with pytest.raises(Full), translated_commit(FILE):
        raise apsw.FullError("database or disk is full")


def test_a_damaged_page_is_told_when_it_is_read(tmp_path):
    path = tmp_path / "state.db"
    database = SqliteDatabase(path)
    with database.transaction() as transaction:
        transaction.execute("CREATE TABLE kept (it TEXT)")
        transaction.execute_many("INSERT INTO kept VALUES (?)", [("x" * 1000,)] * 100)
    database.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    database = SqliteDatabase(path)
    with pytest.raises(Damaged, match="is damaged"):
        database.read("SELECT * FROM kept")
    database.close()
