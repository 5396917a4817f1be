"""Which records may have killed a process: what its supervisor makes of its deaths."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from forebay.core.records import Offset
from forebay.engine.single_file import Named, Place

DEATHS_BEFORE_SINGLE_FILE = 2
DEATHS_OF_A_KILLER = 2


class Suspicion:
    """Of one child, over its lives."""

    def __init__(self) -> None:
        self._unmoved: dict[Place, Offset] = {}
        self._in_a_row: Counter[Place] = Counter()
        self._named: Counter[Named] = Counter()

    def died(self, behind: Mapping[Place, Offset], named: Sequence[Any] | None) -> bool:
        """`behind`: partitions with records left, and what was committed of them.

        True where some of them moved since the last death.
        """
        has_moved = any(behind.get(place) != at for place, at in self._unmoved.items())
        for place in list(self._in_a_row):
            if behind.get(place) != self._unmoved.get(place):
                del self._in_a_row[place]
        self._in_a_row.update(behind.keys())
        self._unmoved = dict(behind)
        if named is not None:
            group, topic, partition, offset = named
            self._named[Named(Place(group, topic, partition), offset)] += 1
        return has_moved

    @property
    def suspects(self) -> dict[Place, Offset]:
        """Partitions that did not move over two deaths, with the offset they stand at."""
        return {
            place: self._unmoved[place]
            for place, deaths in self._in_a_row.items()
            if deaths >= DEATHS_BEFORE_SINGLE_FILE and place in self._unmoved
        }

    @property
    def killers(self) -> list[Named]:
        return [named for named, deaths in self._named.items() if deaths >= DEATHS_OF_A_KILLER]
