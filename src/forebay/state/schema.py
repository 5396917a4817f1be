"""The tables of state/, as numbered steps that only ever go forward."""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from forebay.core.errors import Unusable
from forebay.state.port import Database


class Migration(NamedTuple):
    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    folder = files("forebay.state") / "migrations"
    texts = (file for file in folder.iterdir() if file.name.endswith(".sql"))
    return sorted(_migration(text.name, text.read_text("utf-8")) for text in texts)


def migrate(database: Database, steps: Sequence[Migration] | None = None) -> None:
    """Apply what is missing, in order. Idempotent; several processes may do it at once."""
    steps = migrations() if steps is None else steps
    reached = version(database)
    if reached > max(step.number for step in steps):
        raise Unusable(
            f"{database.name} has the newer layout {reached}; this Forebay knows layouts up to "
            f"{max(step.number for step in steps)}. Nothing was changed. Use a newer Forebay, or "
            f"another file."
        )
    for step in steps:
        if step.number > reached:
            _apply(database, step)


def version(database: Database) -> int:
    """0 where nothing was applied yet."""
    if not database.columns("schema_version"):
        return 0
    ((number,),) = database.read("SELECT coalesce(max(number), 0) FROM schema_version")
    return int(number or 0)


def _apply(database: Database, step: Migration) -> None:
    with database.transaction() as transaction:
        transaction.execute(
            "CREATE TABLE IF NOT EXISTS schema_version "
            "(number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)"
        )
        is_there = transaction.execute(
            "SELECT number FROM schema_version WHERE number = ?", (step.number,)
        )
        if not is_there:
            transaction.execute(step.sql)
            transaction.execute(
                "INSERT INTO schema_version (number, name) VALUES (?, ?)", (step.number, step.name)
            )


def _migration(file_name: str, sql: str) -> Migration:
    """`0001_dead_letters.sql` is step 1, dead_letters."""
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql)
