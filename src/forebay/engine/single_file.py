"""After a process died twice over the same records: one at a time, named before each."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from forebay.core.records import Offset, TopicPartition

UNASSIGNED_SECONDS = 30.0
PATIENCE_SECONDS = 10.0


class Place(NamedTuple):
    """A partition as one group reads it."""

    group: str
    topic: str
    partition: int

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Named(NamedTuple):
    """A record that is about to be handled alone."""

    place: Place
    offset: Offset


class Reach(NamedTuple):
    """Which records may have run when the process died: surely to `near`, hardly past `far`."""

    near: Offset
    far: Offset


class SingleFile:
    """Shared by the record stages of one process. `tell` must have told outside when it returns.

    Slow handlers are looked at to the near end of each reach, fast ones for some seconds more.
    """

    def __init__(
        self,
        suspects: Mapping[Place, Reach],
        killers: Collection[Named],
        tell: Callable[[Named], None],
        now: float,
    ) -> None:
        self._suspects = dict(suspects)
        self._killers = frozenset(killers)
        self._tell = tell
        self._turn = threading.Lock()
        self._changing = threading.Lock()
        self._give_up_at = now + UNASSIGNED_SECONDS
        self._patient_until = now + PATIENCE_SECONDS

    @property
    def is_over(self) -> bool:
        return not self._suspects

    def is_suspect(self, place: Place) -> bool:
        return place in self._suspects

    def is_killer(self, named: Named) -> bool:
        return named in self._killers

    def take_turn(self, named: Named) -> bool:
        """False while another record runs."""
        if not self._turn.acquire(blocking=False):
            return False
        self._tell(named)
        return True

    def give_turn_back(self) -> None:
        self._turn.release()

    def reached(self, place: Place, watermark: Offset, now: float) -> None:
        with self._changing:
            reach = self._suspects.get(place)
            if reach is None:
                return
            end = reach.far if now < self._patient_until else reach.near
            if watermark >= end:
                del self._suspects[place]

    def reached_the_end(self, place: Place) -> None:
        with self._changing:
            self._suspects.pop(place, None)

    def drop_what_is_elsewhere(self, held: Collection[Place], group: str, now: float) -> None:
        """Partitions that other processes were given meanwhile are theirs to look at."""
        if now < self._give_up_at:
            return
        with self._changing:
            for place in list(self._suspects):
                if place.group == group and place not in held:
                    del self._suspects[place]
