"""A dozen and more ways to get it wrong, each small. Nothing in the product knows of them."""

from collections.abc import Iterator

from engine.simulation.member import Kinds
from engine.simulation.scripted_executor import ScriptedExecutor
from forebay.core.lanes import Lane
from forebay.core.offsets import PartitionProgress
from forebay.core.records import CommittedOffset
from forebay.engine.commits import Commits
from forebay.engine.dispatch import Dispatch
from forebay.engine.executors import Finished, take_next
from forebay.engine.held import HeldPartitions
from forebay.engine.loop import StageLoop
from forebay.engine.settler import Settler


def with_part(name: str, faulty: type) -> type[StageLoop]:
    """A loop one part of which is faulty."""

    class Planted(StageLoop):
        def __init__(self, *given, **more):
            super().__init__(*given, **more)
            getattr(self, name).__class__ = faulty

    return Planted


class ResolvesWhenSent(Settler):
    def _add(self, parcel):
        super()._add(parcel)
        self._resolved(parcel.settlement.work)


class ResolvesAtTheFirstReport(Settler):
    def _acknowledged(self, parcel):
        super()._acknowledged(parcel)
        self._resolved(parcel.settlement.work)


class SwallowsLettersThatFail(Settler):
    def _refused(self, parcel, error, now):
        if parcel.role == "letter":
            self._closed_one(parcel.settlement)
        else:
            super()._refused(parcel, error, now)


class SendsForPartitionsThatLeft(Settler):
    def _push_topic(self, topic, now):
        parcels = self._waiting[topic]
        fenced = {parcel.settlement.work.held for parcel in parcels}
        fenced = {held for held in fenced if held.is_fenced}
        for held in fenced:
            held.is_fenced = False
        try:
            return super()._push_topic(topic, now)
        finally:
            for held in fenced:
                held.is_fenced = True


class CommitsThePosition(Commits):
    def _wanted(self, held):
        wanted = super()._wanted(held)
        return wanted and CommittedOffset(held.progress.position, wanted.metadata)


class TakesFailuresForCommits(Commits):
    def _failed(self, failures):
        for at in failures:
            if at in self._asked:
                self._stored[at] = self._asked.pop(at)


class ForgetsKeys(Dispatch):
    def take(self, work):
        lane = Lane(work.held, work.record.key)
        lane.waiting.append(work)
        self._is_ready(work.held, lane)


class KeepsWhatIsQueued(Dispatch):
    def drop(self, held):
        return 0


class KeepsThePlaceOfWhatLeft(Dispatch):
    def ended(self, lane):
        if not lane.holder.is_fenced:
            super().ended(lane)


class RemembersPauses(HeldPartitions):
    def add(self, at, start, now):
        before = self.__dict__.setdefault("paused", {})
        before.update({held.at: held.is_paused for held in self})
        held = super().add(at, start, now)
        held.is_paused = before.get(at, False)
        return held


class LeaksAtTheFence(HeldPartitions):
    def fence(self, at):
        held = self.by_place.pop(at, None)
        if held is not None:
            held.is_fenced = True


class CountsOffsets(PartitionProgress):
    """As if there were no gaps."""

    __slots__ = ()

    def deliver(self, offset, item):
        for missing in range(self._next, offset):
            self._delivered.append(missing)
            self._unresolved[missing] = item
        return super().deliver(offset, item)


class Continuous(HeldPartitions):
    def add(self, at, start, now):
        held = super().add(at, start, now)
        held.progress.__class__ = CountsOffsets
        return held


class HearsFencedPartitions(StageLoop):
    def _settle(self):
        fenced = {f.lane.holder for f in self._executor.finished if f.lane.holder.is_fenced}
        for held in fenced:
            held.is_fenced = False
        try:
            super()._settle()
        finally:
            for held in fenced:
                held.is_fenced = True


class HearsFencedHandlers(StageLoop):
    def _settle(self):
        for finished in self._executor.finished:
            if finished.work is not None:
                finished.work.is_fenced = False
        super()._settle()


class TakesLostForRevoked(StageLoop):
    def lost(self, partitions):
        self.revoked(partitions)


class RevokesWithoutDraining(StageLoop):
    def _drain(self, leaving):
        """Nobody is waited for."""


class PollsOnlyWithRoom(StageLoop):
    def _poll(self, now):
        return super()._poll(now) if self._pauses.room() > 0 else []


class ReadsTheEndTwice(ScriptedExecutor):
    def _serve(self, lane) -> Iterator[float]:
        yield 0
        while True:
            work = take_next(lane)
            if work is None:
                self.finished.append(Finished(lane, None, is_end_of_lane=True))
                return
            self._script.takes(work)
            yield 0
            lane.running = work
            began_at = work.started_at = self._clock.monotonic()
            yield self._script.begins(work)
            self._script.runs(work)
            self._handler.run(work)
            work.started_at = began_at
            self._script.ends(work)
            lane.running = None
            self.finished.append(Finished(lane, work, not lane.waiting or work.is_fenced))
            yield 0
            if not lane.waiting or work.is_fenced:
                self.workers -= work.is_fenced
                return


FAULTS: dict[str, Kinds] = {
    "commit before the acknowledgement": Kinds(with_part("_settler", ResolvesWhenSent)),
    "resolve at the first of several reports": Kinds(
        with_part("_settler", ResolvesAtTheFirstReport)
    ),
    "dead letter's failure swallowed": Kinds(with_part("_settler", SwallowsLettersThatFail)),
    "send for a partition that left": Kinds(with_part("_settler", SendsForPartitionsThatLeft)),
    "commit of last + 1": Kinds(with_part("_commits", CommitsThePosition)),
    "failed commit taken for a stored one": Kinds(with_part("_commits", TakesFailuresForCommits)),
    "no lanes": Kinds(with_part("_dispatch", ForgetsKeys)),
    "queue kept at a revoke": Kinds(with_part("_dispatch", KeepsWhatIsQueued)),
    "in-flight count leaks": Kinds(with_part("_dispatch", KeepsThePlaceOfWhatLeft)),
    "pause remembered across a rebalance": Kinds(with_part("held", RemembersPauses)),
    "held records leak at a fence": Kinds(with_part("held", LeaksAtTheFence)),
    "offsets taken for continuous": Kinds(with_part("held", Continuous)),
    "no generation check": Kinds(HearsFencedPartitions),
    "late result of a fenced handler resolves": Kinds(HearsFencedHandlers),
    "lost taken for revoked": Kinds(TakesLostForRevoked),
    "revoke without a drain": Kinds(RevokesWithoutDraining),
    "no poll without room": Kinds(PollsOnlyWithRoom),
    "end of a lane read twice": Kinds(executor=ReadsTheEndTwice),
}
