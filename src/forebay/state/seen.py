"""What was handled before, so that a repeat is noticed."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from forebay.state.port import Database, Transaction

_KEYS_AT_ONCE = 500


class Sighting(NamedTuple):
    """One key may have many fingerprints: a trace id has one for each of its URLs."""

    key: str
    fingerprint: str
    at_ms: int


class SeenTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, keys: Collection[str]) -> set[tuple[str, str]]:
        """All (key, fingerprint) that were added under these keys."""
        return {pair for some in _portions(keys) for pair in self._pairs(some)}

    def add(self, sightings: Iterable[Sighting], transaction: Transaction | None = None) -> None:
        """In the caller's transaction, or durable on return. Idempotent."""
        if transaction is None:
            with self._database.transaction() as own:
                return self.add(sightings, own)
        return transaction.execute_many(
            "INSERT INTO seen (seen_key, fingerprint, at_ms) VALUES (?, ?, ?) "
            "ON CONFLICT (seen_key, fingerprint) DO UPDATE SET at_ms = excluded.at_ms "
            "WHERE excluded.at_ms > seen.at_ms",
            sightings,
        )

    def forget_before(self, at_ms: int) -> None:
        with self._database.transaction() as transaction:
            transaction.execute("DELETE FROM seen WHERE at_ms < ?", (at_ms,))

    def _pairs(self, keys: Sequence[str]) -> set[tuple[str, str]]:
        marks = ", ".join("?" * len(keys))
        rows = self._database.read(
            f"SELECT seen_key, fingerprint FROM seen WHERE seen_key IN ({marks})",  # noqa: S608 - question marks
            keys,
        )
        return {(str(key), str(fingerprint)) for key, fingerprint in rows}


def _portions(keys: Collection[str]) -> Iterator[list[str]]:
    """A database takes only so many parameters at once."""
    left = iter(keys)
    while some := list(islice(left, _KEYS_AT_ONCE)):
        yield some
