"""A broker and a ledger with dead letters in it, and what a replay left in both."""

from collections import Counter

from forebay.core.envelope import Envelope, read_envelope
from forebay.core.markers import Marker, read_marker
from forebay.core.records import Record, TopicPartition
from forebay.core.sinks import SourcePartition
from forebay.core.topics import TopicSpec
from forebay.engine.ledger import Ledger
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.letters import LetterFilter
from forebay.engine.replay import ReplayRun
from forebay.engine.replay_plans import Plan, ReplayRequest, create_plan
from forebay.engine.routes import Route
from forebay.state.schema import migrate
from forebay.state.sqlite.database import SqliteDatabase
from forebay.testing.clock import FakeClock
from forebay.testing.memory import MemoryBroker
from unit.engine.letters_told import GROUP, INPUT, LETTERS, STAGES, letter, source

AGAIN = "shop-charge.orders.again"
ROUTES = {
    LETTERS: Route("shop", "charge", GROUP, (INPUT,), {INPUT: AGAIN}, (), LETTERS),
}
NOW = 1_700_000_000.0
NOW_MS = 1_700_000_000_000
ALL = LetterFilter()


class Stage:
    def __init__(self, folder) -> None:
        self.clock = FakeClock(NOW)
        self.broker = MemoryBroker(self.clock)
        for topic in (LETTERS, AGAIN):
            self.broker.admin().create_topic(TopicSpec(topic, partitions=2))
        self.database = SqliteDatabase(folder / "state.db")
        self.database._writer.execute("PRAGMA synchronous = OFF")
        migrate(self.database)
        self.ledger = Ledger(self.database)

    def give_up(self, *numbers: int, **options) -> list[Record]:
        records = [source(number, b"value %d" % number, HEADERS) for number in numbers]
        self.tell(*(letter(record, at_ms=5_000 + record.offset, **options) for record in records))
        return records

    def tell(self, *told: Record) -> None:
        producer = self.broker.producer()
        producer.send_many(told)
        producer.close()
        self.fold()

    def fold(self) -> None:
        sink = LedgerSink(self.database, STAGES)
        (topic,) = self.broker.admin().describe_topics([LETTERS])
        places = [SourcePartition(LETTERS, p, topic.id) for p in range(topic.partitions)]
        for place, at in sink.position(places).items():
            records = self.read(LETTERS, place.partition, at or 0)
            sink.commit(records, {place: (at or 0) + len(records)})

    def read(self, topic: str, partition: int, offset: int = 0) -> list[Record]:
        consumer = self.broker.consumer(None)
        consumer.assign({TopicPartition(topic, partition): offset})
        records = consumer.poll(0.0, max_records=100_000)
        consumer.close()
        return records

    def replayed(self) -> list[Record]:
        return self.read(AGAIN, 0) + self.read(AGAIN, 1)

    def replayed_ids(self) -> Counter[str]:
        return Counter(envelope_of(record).id for record in self.replayed())

    def markers(self) -> list[Marker]:
        told = self.read(LETTERS, 0) + self.read(LETTERS, 1)
        return [found for record in told if (found := read_marker(record))]

    def plan(self, wanted: LetterFilter = ALL, **more) -> Plan:
        return create_plan(self.database, request(wanted, **more))

    def run(self, plan: Plan, producer=None, database=None, rate=None) -> ReplayRun:
        producer = producer or self.broker.producer()
        return ReplayRun(database or self.database, producer, plan, ROUTES, rate)

    def carry_out(self, plan: Plan, **more) -> ReplayRun:
        run = self.run(plan, **more)
        self.finish(run)
        self.fold()
        return run

    def finish(self, run: ReplayRun, steps: int = 10_000) -> float:
        begun = self.clock.now()
        for _ in range(steps):
            wait = run.step(self.clock.now())
            if wait is None:
                return self.clock.now() - begun
            self.clock.advance(wait)
        raise AssertionError(run.progress)


HEADERS = [("trace_id", b"tr-1"), ("same", b"1"), ("same", None)]


def request(wanted: LetterFilter = ALL, **more) -> ReplayRequest:
    told = {"actor": "ann", "reason": "the bank is back", "at_ms": NOW_MS, **more}
    return ReplayRequest(wanted=wanted, **told)


def envelope_of(record: Record) -> Envelope:
    envelope = read_envelope(record)
    assert envelope is not None
    return envelope
