"""A process of its own on a store: `member.py migrate|count KIND PLACE`.

It says that it is ready, waits for a line, works, and says that it is done.
"""

import sys

from contracts.state.adapters import store
from forebay.state.port import Database
from forebay.state.schema import migrate

ROUNDS = 200


def count(database: Database) -> None:
    """Reads a number and writes the next one: two that interleave lose some."""
    for _ in range(ROUNDS):
        with database.transaction() as transaction:
            ((number,),) = transaction.execute("SELECT number FROM counter")
            transaction.execute("UPDATE counter SET number = ?", (number + 1,))


def main(task: str, kind: str, place: str) -> None:
    there = store(kind, place)
    print("ready", flush=True)
    sys.stdin.readline()
    database = there.open()
    {"migrate": migrate, "count": count}[task](database)
    database.close()
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
