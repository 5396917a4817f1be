import threading

import pytest

from forebay.core.errors import Unusable
from forebay.state.schema import Migration, migrate, migrations, version

FIRST = Migration(1, "orders", "CREATE TABLE orders (id TEXT NOT NULL PRIMARY KEY)")
SECOND = Migration(
    2,
    "amounts",
    "ALTER TABLE orders ADD COLUMN amount BIGINT;"
    "CREATE TABLE applied (id TEXT);"
    "INSERT INTO applied VALUES ('twice?')",
)
BROKEN = Migration(
    3, "broken", "CREATE TABLE half (id TEXT); INSERT INTO nothing_of_that_name VALUES (1)"
)


def test_every_table_is_there_after_the_first_start(database):
    migrate(database)
    tables = ["dead_letters", "dead_letter_markers", "replay_plans", "replay_entries"]
    tables += ["replay_claims", "audit_trail", "expired_ranges", "seen", "sink_positions"]
    assert [table for table in tables if not database.columns(table)] == []
    assert version(database) == len(migrations())


def test_steps_are_numbered_without_a_gap():
    assert [step.number for step in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_step_is_not_applied_twice(database):
    migrate(database, [FIRST, SECOND])
    migrate(database, [FIRST, SECOND])
    assert database.read("SELECT count(*) FROM applied") == [(1,)]


def test_a_step_is_applied_once_when_several_start_together(open_database):
    starting = threading.Barrier(4)
    failed = []

    def start() -> None:
        database = open_database()
        starting.wait(10)
        try:
            migrate(database, [FIRST, SECOND])
        except Exception as error:  # noqa: BLE001 - told below, on the test's own thread
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert open_database().read("SELECT count(*) FROM applied") == [(1,)]


def test_an_older_store_gets_what_it_lacks_and_keeps_its_rows(database):
    migrate(database, [FIRST])
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO orders VALUES ('a')")
    migrate(database, [FIRST, SECOND])
    assert version(database) == 2
    assert database.read("SELECT id, amount FROM orders") == [("a", None)]


def test_a_newer_store_is_refused_with_its_name_and_left_alone(database):
    migrate(database, [FIRST, SECOND])
    with pytest.raises(Unusable, match=r"has the newer layout 2; this Forebay knows .* up to 1"):
        migrate(database, [FIRST])
    assert version(database) == 2


def test_a_step_that_fails_half_way_leaves_no_half(database):
    with pytest.raises(Unusable):
        migrate(database, [FIRST, SECOND, BROKEN])
    assert version(database) == 2
    assert database.columns("half") == []
