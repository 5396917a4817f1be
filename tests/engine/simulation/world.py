"""Topics, members and everything that happens to them from outside."""

import random
from itertools import count
from pathlib import Path

from engine.simulation.doors import GAP, Surroundings
from engine.simulation.faults import Faults
from engine.simulation.handlers import OUT
from engine.simulation.member import Kinds, Member, Premises
from engine.simulation.oracle import SERIAL, Oracle
from forebay.core.backpressure import Bounds
from forebay.core.envelope import PREFIX, read_envelope
from forebay.core.records import Header, Record, TopicPartition
from forebay.core.retries import RetryPolicy
from forebay.core.topics import TopicSpec
from forebay.engine.routes import record_route
from forebay.engine.stages import RecordStage
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker

INPUT = "orders"
RECORDS = 24
MEMBERS_MAX = 3
RECORD_BYTES_MAX = 4_000


class World:
    def __init__(self, chance: random.Random, faults: Faults, kinds: Kinds) -> None:
        self._chance = chance
        self._faults = faults
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock, record_bytes_max=RECORD_BYTES_MAX)
        self.stage = _stage(chance)
        owned = frozenset([INPUT]) if chance.random() < 0.5 else frozenset()
        self.route = record_route("shop", "shop", self.stage, owns_alone=owned)
        self._premises = Premises(self.broker, self.stage, self.route, count(1), kinds)
        self.oracle = Oracle(self._low_of)
        self.members: list[Member] = []
        self.produced = 0
        self._serials = count(1)
        self._names = count(1)
        self._sender = self.broker.producer()
        self._dead: list[tuple[str, float]] = []
        self._read_of_tiers: dict[TopicPartition, int] = {}
        self._create_topics()
        self.join()

    def _create_topics(self) -> None:
        admin = self.broker.admin()
        partitions = self._chance.choice((1, 2, 4))
        for topic in dict.fromkeys((*self.route.reads, *self.route.derived_topics)):
            admin.create_topic(TopicSpec(topic, partitions if topic == INPUT else 1))
        admin.create_topic(TopicSpec(OUT))

    # What happens from outside.

    def act(self) -> None:
        chance, hit = self._chance, self._faults.hit
        self.clock.advance(chance.choice((0, 0.002, 0.05, 0.3)))
        if hit("time_jump"):
            self.clock.advance(chance.uniform(0.5, 12))
        if self.produced < RECORDS:
            self.produce(chance.randrange(4))
        if hit("join") and len(self.members) < MEMBERS_MAX:
            self.join()
        if self.members:
            self._disturb(chance.choice(self.members))
        if hit("trim"):
            self._trim()
        self._redeliver()
        self._bury_the_dead()

    def _disturb(self, member: Member) -> None:
        hit = self._faults.hit
        if hit("crash"):
            self.oracle.note(f"{member.around.name} crashes")
            member.is_gone = True
        elif hit("leave") and not member.is_stopping:
            member.stop(self._chance.choice((0.0, 0.2, 5.0, 60.0)))
        elif member.consumer.member_id and hit("expelled"):
            self.oracle.note(f"{member.around.name} is expelled")
            self._group.leave(member.consumer.member_id)
        elif hit("freeze"):
            self.clock.advance(self._chance.choice((0.5, 3.0, 20.0)))

    def join(self) -> None:
        around = Surroundings(
            f"m{next(self._names)}", self.clock, self._chance, self._faults, self.oracle
        )
        self.oracle.note(f"{around.name} starts")
        self.members.append(Member(self._premises, around))

    def produce(self, number: int) -> None:
        for _ in range(number):
            key = self._chance.choice((b"a", b"b", b"c", b"d", None))
            if self._chance.random() < 0.15:
                self._sender.send(Record(None, key, [(GAP, None)], INPUT))
                continue
            self.produced += 1
            values = (b"order %d" % self.produced, None, b"y" * 2_500, b"z" * 3_700)
            value = self._chance.choice(values)
            headers: list[Header] = [("colour", b"red"), ("colour", None)]
            if self._chance.random() < 0.1:
                self._faults.seen("headers_forged")
                headers.append((PREFIX + self._chance.choice(("attempt", "origin")), b"9" * 40))
            self._store(Record(value, key, headers, INPUT), attempt=1)
        self._sender.poll(0)

    def _store(self, record: Record, attempt: int) -> None:
        serial = next(self._serials)
        headers = [*record.headers, (SERIAL, b"%d" % serial)]
        headers.sort(key=lambda header: header[0] == SERIAL)
        stamped = record._replace(headers=headers)
        self._sender.send(stamped)
        report = self._sender.poll(0)[-1]
        placed = stamped._replace(partition=report.partition, offset=report.offset)
        self.oracle.stored(serial, placed, attempt)

    def _redeliver(self) -> None:
        """What the scheduler of tiers does, without its own faults."""
        now_ms = int(self.clock.now() * 1000)
        for tier in self.route.tiers:
            at = TopicPartition(tier.topic, 0)
            position = self._read_of_tiers.get(at, 0)
            for record in self.broker._store.log(at).read(position, 100):
                envelope = read_envelope(record)
                assert envelope is not None
                if envelope.due_ms > now_ms:
                    break
                self._read_of_tiers[at] = record.offset + 1
                headers = [header for header in record.headers if header[0] != SERIAL]
                topic = self.route.re_entry(envelope.origin.topic)
                again = Record(record.value, record.key, headers, topic)
                self._store(again, envelope.attempt)

    def _trim(self) -> None:
        at = self._chance.choice(self._places())
        low, end = self.broker.admin().watermarks([at])[at]
        low = self._chance.randint(low, end)
        self.oracle.trimmed(at, low)
        self.broker.admin().trim({at: low})

    def _bury_the_dead(self) -> None:
        """The group notices after a while that a process is gone."""
        now = self.clock.monotonic()
        for member in [member for member in self.members if member.is_gone]:
            self.members.remove(member)
            if member.consumer.member_id:
                self._dead.append(
                    (member.consumer.member_id, now + self._chance.choice((0, 1, 10)))
                )
        for name, at in list(self._dead):
            if now >= at:
                self._group.leave(name)
                self._dead.remove((name, at))

    # When the faults are over.

    def calm_down(self) -> None:
        self.oracle.note("the faults are over")
        self._faults.are_over = True
        self._bury_the_dead()

    def settle_down(self) -> None:
        for member in list(self.members):
            member.settle_down()
        self.clock.advance(0.5)
        self._redeliver()
        self._bury_the_dead()
        if not self.members:
            self.join()

    def is_drained(self) -> bool:
        if self._dead or any(member.is_stopping for member in self.members):
            return False
        is_redelivered = all(
            self._read_of_tiers.get(TopicPartition(tier.topic, 0), 0)
            == self.broker._store.log(TopicPartition(tier.topic, 0)).end
            for tier in self.route.tiers
        )
        is_idle = all(not member.loop.left_behind for member in self.members)
        is_quiet = all(member.executor.is_at_rest for member in self.members)
        return is_redelivered and is_idle and is_quiet and not self._uncommitted()

    def what_is_left(self) -> str:
        return f"uncommitted={self._uncommitted()} {[member.told() for member in self.members]}"

    def _uncommitted(self) -> dict[str, tuple[int, int]]:
        """Places whose last record is not committed. A gap behind it may stay."""
        ends: dict[TopicPartition, int] = {}
        for at, offset in self.oracle.at:
            ends[at] = max(ends.get(at, 0), offset + 1)
        committed = {at: known.offset for at, known in self._group.committed.items()}
        return {
            str(at): (committed.get(at, 0), end)
            for at, end in ends.items()
            if committed.get(at, 0) < end
        }

    def _places(self) -> list[TopicPartition]:
        return self.broker._store.partitions(self.route.reads)

    def _low_of(self, at: TopicPartition) -> int:
        return self.broker._store.log(at).low

    @property
    def _group(self):
        return self.broker._store.group(self.route.group)


def _stage(chance: random.Random) -> RecordStage:
    order_by = chance.choice(("unordered", "key", "partition"))
    return RecordStage(
        name="charge",
        reads=INPUT,
        run=lambda record: None,
        order_by=order_by,
        concurrency=chance.choice((1, 2, 4)),
        retry=RetryPolicy(chance.choice(((5.0, 20.0), (5.0,), ()))),
        timeout_seconds=8.0,
        commit_seconds=chance.choice((0.2, 5.0)),
        dead_letters=chance.choice((None, None, None, Path("letters.csv"))),
        when_dead_lettered=chance.choice((None, lambda record, failure: None)),
        bounds=Bounds(chance.choice((4, 10, 1_000)), span=chance.choice((6, 50))),
    )
