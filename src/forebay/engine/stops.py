"""Where a run was told to end by itself."""

from collections.abc import Sequence

from forebay.core.records import Record
from forebay.engine.counters import Counters
from forebay.engine.doors import LoopOptions
from forebay.engine.held import HeldPartitions
from forebay.engine.work import HeldPartition


class Stops:
    """Belongs to the loop's thread. Stops of topics that this loop does not read are others'."""

    def __init__(
        self,
        options: LoopOptions,
        topics: Sequence[str],
        counters: Counters,
        held: HeldPartitions,
    ) -> None:
        self._offsets = {at: stop for at, stop in options.stops.items() if at.topic in topics}
        self._is_any_enough = options.stops_at == "any"
        self._drains_queue = options.drains_queue
        self._records_max = options.records_max
        self._counters = counters
        self._held = held

    def may_deliver(self, held: HeldPartition, record: Record) -> bool:
        """Records at a stop or beyond it are left for another run; so are others once it ends."""
        stop, enough = self._offsets.get(held.at), self._records_max
        if (
            (stop is not None and record.offset >= stop)
            or (enough is not None and self._counters.delivered >= enough)
            or (self._offsets and self._are_targets_reached())
        ):
            held.is_at_stop = True
        return not held.is_at_stop

    @property
    def are_reached(self) -> bool:
        """All that was to be handled is resolved; or is in the queue, where a stop drains that."""
        if not len(self._held):
            return False
        if self._records_max is not None:
            return not self._held.records and self._counters.delivered >= self._records_max
        may_end = self._drains_queue or not self._held.records
        return may_end and self._are_targets_reached()

    def _are_targets_reached(self) -> bool:
        reached = [self._is_reached(self._held[at]) for at in self._offsets if at in self._held]
        return any(reached) if self._is_any_enough else bool(reached) and all(reached)

    def _is_reached(self, held: HeldPartition) -> bool:
        is_done = held.is_at_stop and not held.progress.unresolved
        return is_done or held.progress.watermark >= self._offsets[held.at]
