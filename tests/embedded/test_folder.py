import os
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.embedded.guard import check_file_system, check_sqlite
from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import AccessDenied, Damaged, Unusable
from forebay.core.topics import TopicSpec
from torture import first_start


def change(folder: Path, sql: str) -> None:
    connection = apsw.Connection(str(folder / "broker.db"))
    connection.execute(sql)
    connection.close()


def test_eight_processes_that_find_an_empty_folder_all_start_and_store():
    assert first_start.race() == []


@pytest.mark.parametrize(("version", "age"), [(2, "newer"), (0, "older")])
def test_a_file_of_another_layout_is_refused_with_what_to_do(open_broker, folder, version, age):
    open_broker().close()
    change(folder, f"PRAGMA user_version = {version}")
    with pytest.raises(Unusable, match=rf"broker.db has the {age} layout {version}.*Nothing was"):
        open_broker()


def test_a_file_that_is_no_database_is_refused_and_left_alone(open_broker, folder):
    folder.mkdir()
    (folder / "broker.db").write_bytes(b"something else entirely" * 1000)
    with pytest.raises(Damaged, match="not a broker's file"):
        open_broker()
    assert (folder / "broker.db").read_bytes().startswith(b"something else")


def test_another_programs_database_is_refused(open_broker, folder):
    folder.mkdir()
    change(folder, "CREATE TABLE theirs (x)")
    with pytest.raises(Damaged, match="another program's database"):
        open_broker()


def test_a_page_that_was_overwritten_is_found_by_the_doctor(open_broker, folder, send):
    broker = open_broker()
    broker.admin().create_topic(TopicSpec("t"))
    send(broker, "t", [b"x" * 500] * 500)
    broker.close()
    connection = apsw.Connection(str(folder / "broker.db"))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with (folder / "broker.db").open("r+b") as file:
        file.seek(20 * 8192)
        file.write(os.urandom(8192))
    intact = open_broker().diagnose()[0]
    assert not intact.ok
    assert intact.do or "restore it from a backup" in intact.detail


def test_a_healthy_broker_has_only_good_findings(broker):
    assert [finding for finding in broker.diagnose() if not finding.ok] == []


CLOSED = """
import os, sys
from pathlib import Path
from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import AccessDenied

if os.getuid() == 0:
    os.setuid(65534)
try:
    EmbeddedBroker(EmbeddedSettings(Path(sys.argv[1])))
except AccessDenied as error:
    print(error)
"""


def test_a_folder_that_may_not_be_written_is_refused():
    """In a process that gives up root, for whom nothing is forbidden."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        closed = Path(home) / "closed"
        closed.mkdir(mode=0o555)
        told = subprocess.run(
            [sys.executable, "-c", CLOSED, str(closed / "broker")],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    assert "cannot be used (Permission denied)" in told.stdout
    assert "--dir" in told.stdout


def test_a_path_through_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessDenied, match="cannot be used"):
        EmbeddedBroker(EmbeddedSettings(tmp_path / "file" / "broker"))


def test_a_second_process_with_other_settings_is_refused(open_broker, folder):
    open_broker()
    with pytest.raises(Unusable, match=r"created with record_bytes_max = 1000000.*asks for 5"):
        open_broker(settings=EmbeddedSettings(folder, record_bytes_max=5))


def test_an_sqlite_with_the_wal_reset_bug_is_refused():
    with pytest.raises(Unusable, match=r"SQLite 3.51.2 can corrupt"):
        check_sqlite("3.51.2")
    check_sqlite("3.51.3")


def test_a_network_file_system_is_refused(tmp_path):
    mounts = (
        "22 1 8:1 / / rw - ext4 /dev/vda rw\n"
        f"30 22 0:50 / {tmp_path.resolve()} rw shared:1 - nfs4 server:/export rw\n"
    )
    with pytest.raises(Unusable, match=r"network file system \(nfs4\)"):
        check_file_system(tmp_path / "broker", mounts)
    check_file_system(Path("/somewhere/else"), mounts)


def test_it_stays_what_it_was_when_opened_again(open_broker, folder, send, read):
    first = open_broker()
    first.admin().create_topic(TopicSpec("t"))
    send(first, "t", [b"1", b"2"])
    first.close()
    second = open_broker()
    assert second.describe().identity == first.describe().identity
    assert read(second, "t") == [b"1", b"2"]
