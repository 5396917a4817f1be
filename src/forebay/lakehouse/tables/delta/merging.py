"""The condition under which a merge replaces rows, with the partitions it touches as literals.

Without literals the client reads the whole table: eight times slower, a gigabyte at a million rows.
"""

from collections.abc import Collection, Sequence
from datetime import date

PARTITIONS_IN_ONE_MERGE_MAX = 3


def matching(
    key: Sequence[str],
    partition_by: Sequence[str],
    touched: Sequence[Sequence[object]],
    may_be_null: Collection[str] = (),
) -> str:
    """`may_be_null` are columns of the key that are, in some row; a null equals a null."""
    names = dict.fromkeys([*key, *partition_by])
    equals = {name: "IS NOT DISTINCT FROM" if name in may_be_null else "=" for name in names}
    conditions = [f"(t.{quoted(name)} {equals[name]} s.{quoted(name)})" for name in names]
    for at, name in enumerate(partition_by):
        values = dict.fromkeys(partition[at] for partition in touched)
        literals = [_literal(value) for value in values]
        if all(literals):
            conditions.append(f"t.{quoted(name)} IN ({', '.join(map(str, literals))})")
    return " AND ".join(conditions)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: object) -> str | None:
    """None for what has no plain spelling: the condition then does without."""
    match value:
        case bool():
            return None
        case date() if type(value) is date:
            return f"DATE '{value.isoformat()}'"
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return None
