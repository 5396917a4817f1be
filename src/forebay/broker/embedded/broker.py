import os
import weakref
from contextlib import ExitStack
from random import Random
from typing import Protocol

from forebay.broker.embedded.admin import EmbeddedAdmin
from forebay.broker.embedded.consumer import EmbeddedConsumer
from forebay.broker.embedded.diagnosis import diagnose
from forebay.broker.embedded.folder import Folder
from forebay.broker.embedded.guard import ForkGuard, LockGuard
from forebay.broker.embedded.keeper import Keeper
from forebay.broker.embedded.parts import Parts
from forebay.broker.embedded.producer import EmbeddedProducer
from forebay.broker.embedded.topics import TopicIndex
from forebay.broker.embedded.writer import Writer
from forebay.broker.port import BrokerDescription, Finding
from forebay.broker.settings import ConsumerSettings, EmbeddedSettings, ProducerSettings
from forebay.core.clock import Clock
from forebay.core.probe import NoProbe, Probe
from forebay.observability.catalogue import Emit, silent
from forebay.observability.clock import SystemClock


class _Closable(Protocol):
    def close(self) -> object: ...


class EmbeddedBroker:
    """One SQLite file per folder, any number of processes on this machine.

    `gaps` and `vfs` are for tests: offsets that are skipped, a disk that fails.
    """

    def __init__(
        self,
        settings: EmbeddedSettings,
        *,
        clock: Clock | None = None,
        emit: Emit = silent,
        probe: Probe | None = None,
        gaps: Random | None = None,
        vfs: str = "",
    ) -> None:
        clock, probe = clock or SystemClock(), probe or NoProbe()
        self._folder = folder = Folder(settings.folder, vfs)
        folder.prepare(settings)
        self._record_bytes_max = settings.record_bytes_max
        self._guard = LockGuard(folder.file)
        writer = Writer(folder, settings.wal_bytes_max, emit, probe, gaps)
        self._parts = Parts(
            folder=folder,
            writer=writer,
            keeper=Keeper(folder, writer, clock, emit, settings.maintenance_seconds),
            topics=TopicIndex(folder.connect()),
            fork=ForkGuard(),
            clock=clock,
            emit=emit,
            probe=probe,
            record_bytes_max=settings.record_bytes_max,
            forget=self._forget,
        )
        self._identity = folder.read_identity()
        self._admin = EmbeddedAdmin(folder.connect(), writer, self._parts.fork, self._identity)
        self._given_out: list[_Closable] = []
        self._is_closed = False
        _forget_locks_in_children(self._parts.keeper)
        emit("broker.connected", broker=self.describe().sentence)

    def describe(self) -> BrokerDescription:
        return BrokerDescription(
            kind="embedded",
            identity=self._identity,
            sentence=(
                f"embedded (one machine, one disk, fsync on every acknowledgement) · "
                f"{self._folder.file}"
            ),
        )

    def diagnose(self) -> list[Finding]:
        self._parts.fork.check()
        return diagnose(self._folder, self._guard)

    @property
    def record_bytes_max(self) -> int:
        return self._record_bytes_max

    def admin(self) -> EmbeddedAdmin:
        self._parts.fork.check()
        return self._admin

    def producer(self, settings: ProducerSettings | None = None) -> EmbeddedProducer:
        self._parts.fork.check()
        producer = EmbeddedProducer(self._parts, settings or ProducerSettings())
        self._given_out.append(producer)
        return producer

    def consumer(
        self, group: str | None, settings: ConsumerSettings | None = None
    ) -> EmbeddedConsumer:
        self._parts.fork.check()
        consumer = EmbeddedConsumer(self._parts, group, settings or ConsumerSettings())
        self._given_out.append(consumer)
        return consumer

    def close(self) -> None:
        self._parts.fork.check()
        if self._is_closed:
            return
        self._is_closed = True
        with ExitStack() as last_first:
            last_first.callback(self._guard.close)
            last_first.callback(self._admin.close)
            last_first.callback(self._parts.topics.close)
            last_first.callback(self._parts.writer.close)
            last_first.callback(self._parts.keeper.close)
            for given in self._given_out:
                last_first.callback(given.close)

    def _forget(self, given: object) -> None:
        self._given_out = [other for other in self._given_out if other is not given]


def _forget_locks_in_children(keeper: Keeper) -> None:
    """A forked child shares its parent's flocks and would keep dead members alive."""
    reference = weakref.ref(keeper)

    def forget() -> None:
        if keeper := reference():
            keeper.drop_locks_in_child()

    os.register_at_fork(after_in_child=forget)
