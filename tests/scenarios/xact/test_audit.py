"""`forebay audit xact` on an embedded broker, Delta tables and a folder of files, as they are.

The world is made through the adapters; then one thing is taken away with the tools of others.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from deltalake import DeltaTable as Table

from forebay.bootstrap import open_broker, open_database
from forebay.bootstrap.audits import open_xact_audit
from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.cli.audit_domain import as_object
from forebay.domains.xact import tables
from forebay.domains.xact.audit_places import WRITERS
from forebay.lakehouse.tables.delta.location import TableLocation
from forebay.lakehouse.tables.delta.sink import DeclaredTable, DeltaSink
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.operations.domain_audit import AuditRequest
from forebay.settings import Flags, read_settings
from forebay.state.schema import migrate
from forebay.state.sql_values import Column
from forebay.state.sqlite.database import SqliteDatabase
from unit.domains.xact.audit_world import World, url

LINKS = [url(number) for number in range(6)]


class Lake:
    """The data folder of a pipeline that has done all its work."""

    def __init__(self, folder):
        self.folder = folder

    def fill(self):
        clock = SystemClock()
        broker = EmbeddedBroker(EmbeddedSettings(self.folder), clock=clock, emit=silent)
        state = SqliteDatabase(self.folder / "state.db")
        migrate(state)
        world = World(broker, state, clock)
        _live(world)
        self._write_tables(world.finish())
        for path, content in world.files.held.items():
            self.file(path).parent.mkdir(parents=True, exist_ok=True)
            self.file(path).write_bytes(content)
        state.close()
        broker.close()

    def trim_events(self):
        broker = EmbeddedBroker(EmbeddedSettings(self.folder), clock=SystemClock(), emit=silent)
        world = World(broker)
        world.event("t-unread", partition=2)
        broker.admin().trim(world.ends(world.topics.events))
        broker.close()

    def file(self, path):
        return self.folder / "files" / "xact" / path

    def table(self, name):
        return Table(str(self.folder / "tables" / name))

    def paths(self):
        return [path for path in self.file("").rglob("*") if path.is_file()]

    def change_state(self, statement):
        with closing(sqlite3.connect(self.folder / "state.db")) as state:
            assert state.execute(statement).rowcount == 1
            state.commit()

    def command(self, bytecode, *options):
        """`forebay audit xact` in a process of its own."""
        words = [sys.executable, "-m", "forebay", "audit", "xact", "--dir", str(self.folder)]
        ours = {name: v for name, v in os.environ.items() if not name.startswith("FOREBAY_")}
        environment = ours | {
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(bytecode),
        }
        return subprocess.run(
            [*words, *options],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def told(self, **options):
        """What that command would print as JSON."""
        settings = read_settings(Flags(folder=self.folder), {})
        request = AuditRequest(**options)
        broker = open_broker(settings.broker, silent)
        state = open_database(settings.state_file)
        now_ms = int(SystemClock().now() * 1000)
        with (
            closing(broker),
            closing(state),
            open_xact_audit(settings, silent, broker, state, now_ms=now_ms) as audit,
        ):
            return as_object("xact", request, audit.report(request, lambda done, total: None), 0.1)

    def _write_tables(self, world):
        for stage in world.pipeline.sink_stages:
            name = stage.target.name
            columns = tuple(Column(column, kind) for column, kind in stage.columns.items())
            place = TableLocation(str(self.folder / "tables" / name))
            sink = DeltaSink(
                f"xact-{WRITERS[name]}",
                DeclaredTable(
                    place, columns, tuple(stage.key), stage.target.mode, stage.target.partition_by
                ),
            )
            (topic,) = stage.topics
            reach = {world.source(at): end for at, end in world.ends(topic).items()}
            sink.position(reach)
            sink.commit(world.items(name), reach)
            sink.close()


def _live(world):
    for number in range(3):
        world.store(world.event(f"t-{number}", [LINKS[number]], partition=number))
    world.bury_attachment(world.event("t-dead", [LINKS[3]]), LINKS[3])
    world.refuse(world.event("t-refused", [LINKS[4]]), LINKS[4])
    world.event("t-nothing")
    world.bury("event-ingester", world.send(b"no json"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    lake = Lake(tmp_path_factory.mktemp("filled") / "data")
    lake.folder.mkdir()
    lake.fill()
    return lake


@pytest.fixture
def lake(filled, tmp_path):
    shutil.copytree(filled.folder, tmp_path / "data", ignore=shutil.ignore_patterns("bells"))
    return Lake(tmp_path / "data")


def kinds(told):
    return sorted(finding["kind"] for finding in told["findings"])


def test_a_pipeline_that_did_its_work_is_proven_to_have(lake):
    told = lake.told()
    assert told["findings"] == []
    assert told["source"] == "xact.events.raw"
    assert (told["events"], told["events_by_state"]["dead_lettered"]) == (7, 1)
    assert told["attachments"] == {
        "stored": 3,
        "refused": 1,
        "dead_lettered": 1,
        "waiting": 0,
        "lost": 0,
    }
    assert (told["files_checked"], told["files_hashed"]) == (3, 3)


def test_a_person_reads_the_states_and_that_nothing_is_unaccounted(lake, bytecode):
    ended = lake.command(bytecode)
    assert ended.returncode == 0
    assert "unaccounted: none" in ended.stdout
    assert "source xact.events.raw" in ended.stdout


def test_a_row_deleted_from_the_inventory_is_found(lake, bytecode):
    lake.table(tables.ATTACHMENTS).delete("trace_id = 't-1'")
    ended = lake.command(bytecode, "--json", "--no-content")
    assert ended.returncode == 1
    told = json.loads(ended.stdout.splitlines()[-1])
    assert kinds(told) == ["missing_row", "unaccounted"]
    assert {finding["trace_id"] for finding in told["findings"]} == {"t-1"}


def test_a_deleted_file_is_found(lake):
    next(path for path in lake.paths() if "t-2" in path.parts).unlink()
    told = lake.told()
    assert [(f["kind"], f["trace_id"]) for f in told["findings"]] == [("missing_file", "t-2")]
    assert "Signature" not in json.dumps(told)


def test_one_changed_byte_of_a_file_is_found_and_said_in_a_sentence(lake, bytecode):
    changed = lake.paths()[0]
    changed.write_bytes(b"C" + changed.read_bytes()[1:])
    assert kinds(lake.told()) == ["wrong_content"]
    ended = lake.command(bytecode)
    assert ended.returncode == 1
    assert "restore it" in ended.stdout


def test_a_file_that_no_row_names_is_found(lake):
    lake.file("stray.pdf").write_bytes(b"x")
    assert kinds(lake.told()) == ["orphan_file"]


def test_an_event_deleted_from_its_table_is_found(lake):
    lake.table(tables.EVENTS).delete("trace_id = 't-nothing'")
    told = lake.told()
    assert [(f["kind"], f["trace_id"]) for f in told["findings"]] == [
        ("missing_event", "t-nothing")
    ]


@pytest.mark.parametrize("stage", ["download", "event-ingester"])
def test_a_deleted_dead_letter_is_found(lake, stage):
    lake.change_state(f"DELETE FROM dead_letters WHERE stage = '{stage}'")  # noqa: S608 - two constants
    assert kinds(lake.told()) == ["unaccounted"]


def test_raw_trimmed_past_both_groups_is_found(lake):
    lake.trim_events()
    told = lake.told()
    assert told["source"] == "xact_events"
    assert set(kinds(told)) == {"expired_range"}
    assert told["attachments"]["stored"] == 3


def test_nothing_to_audit_is_no_success(tmp_path, bytecode):
    ended = Lake(tmp_path).command(bytecode, "--json")
    assert ended.returncode == 1
    assert "nothing was audited" in ended.stderr
