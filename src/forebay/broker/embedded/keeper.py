"""The background life of a broker in one process: signs of life, dead peers, old records."""

import threading
import time
from concurrent.futures import Future
from pathlib import Path

from forebay.broker.embedded import groups, retention, topics
from forebay.broker.embedded.bells import BellTower
from forebay.broker.embedded.folder import Folder
from forebay.broker.embedded.liveness import SignOfLife, is_dead
from forebay.broker.embedded.writer import Operation, Writer
from forebay.core.clock import Clock
from forebay.core.errors import ForebayError
from forebay.observability.catalogue import Emit

PROBE_SECONDS = 0.2


class Pulse:
    """What the keeper knows of one member of its own process."""

    def __init__(self, sign: SignOfLife, member_id: str, group_id: int, poll_max: float) -> None:
        self.sign = sign
        self.member_id = member_id
        self.group_id = group_id
        self.is_hung = False
        self._poll_interval_max_seconds = poll_max
        self._polls = 0
        self._polled_at = time.monotonic()

    def poll_begins(self) -> None:
        self._polls += 1

    def poll_ends(self) -> None:
        self._polled_at = time.monotonic()
        self._polls -= 1

    def has_stopped_polling(self, now: float) -> bool:
        return not self._polls and now - self._polled_at > self._poll_interval_max_seconds


class Keeper:
    def __init__(
        self,
        folder: Folder,
        writer: Writer,
        clock: Clock,
        emit: Emit,
        maintenance_seconds: float,
    ) -> None:
        self._folder = folder
        self._writer = writer
        self._clock = clock
        self._emit = emit
        self._maintenance_seconds = maintenance_seconds
        self._tower = BellTower(folder.bells)
        self._connection = folder.connect()
        self._pulses: dict[str, Pulse] = {}
        self._pending: dict[str, Future[bool]] = {}
        self._chore: Future[None] | None = None
        self._looked_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="forebay-keeper", daemon=True)
        self._thread.start()

    def watch(self, pulse: Pulse) -> None:
        self._pulses[pulse.member_id] = pulse

    def forget(self, pulse: Pulse) -> None:
        self._pulses.pop(pulse.member_id, None)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def drop_locks_in_child(self) -> None:
        for pulse in self._pulses.values():
            pulse.sign.forget()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(PROBE_SECONDS):
                self._turn(time.monotonic())
        finally:
            self._connection.close()

    def _turn(self, now: float) -> None:
        try:
            self._beat(now)
            self._writer.topics_version = self._connection.execute(topics.VERSION).get
            self._probe_peers(now)
            self._do_chores(now)
        except ForebayError:
            # The writer has refused: whoever uses the broker next is told by it.
            self._stopping.set()

    def _beat(self, now: float) -> None:
        for pulse in list(self._pulses.values()):
            if pulse.is_hung:
                continue
            if pulse.has_stopped_polling(now):
                pulse.is_hung = True
                self._expel(pulse.member_id, None, "it stopped polling")
            else:
                pulse.sign.beat(now)

    def _probe_peers(self, now: float) -> None:
        own_groups = {pulse.group_id for pulse in self._pulses.values()}
        for member_id, group_id, session_seconds in self._connection.execute(
            "SELECT id, consumer_group, session_seconds FROM member"
        ):
            path = self._folder.members / member_id
            if group_id in own_groups and member_id not in self._pulses:
                self._bury(member_id, path, session_seconds, now)

    def _bury(self, member_id: str, path: Path, session_seconds: float, now: float) -> None:
        if is_dead(path, session_seconds, now):
            self._expel(member_id, (path, session_seconds), "its process died or froze")

    def _expel(self, member_id: str, sign: tuple[Path, float] | None, why: str) -> None:
        """Asked for without waiting, so that a held gate does not silence our own members."""
        pending = self._pending.get(member_id)
        if pending and not pending.done():
            return

        def still_dead() -> bool:
            return sign is None or is_dead(*sign, time.monotonic())

        operation = Operation(
            lambda transaction: groups.remove(transaction, member_id, still_dead=still_dead)
        )
        operation.future.add_done_callback(lambda done: self._buried(done, member_id, sign, why))
        self._pending = {id: f for id, f in self._pending.items() if not f.done()}
        self._pending[member_id] = operation.future
        self._writer.submit(operation)

    def _buried(
        self, done: "Future[bool]", member_id: str, sign: tuple[Path, float] | None, why: str
    ) -> None:
        if done.exception() is None and done.result():
            self._emit("group.member_expelled", member=member_id, reason=why)
            if sign is not None:
                sign[0].unlink(missing_ok=True)

    def _do_chores(self, now: float) -> None:
        if self._chore is not None and not self._chore.done():
            return
        if self._chore is None and now - self._looked_at < self._maintenance_seconds:
            return
        self._looked_at, self._chore = now, None
        self._tower.sweep(self._clock.now())
        now_ms = int(self._clock.now() * 1000)
        chores = retention.look(self._connection, now_ms)
        if chores:
            operation = Operation(
                lambda transaction: retention.do_one_piece(transaction, chores, now_ms),
                weight=retention.PIECE,
            )
            self._chore = operation.future
            self._writer.submit(operation)
