"""Every record of a pipeline is accounted for: resolved, waiting, dead, in flight or expired."""

import pytest

from forebay import Pipeline
from forebay.core.envelope import first_envelope, seal
from forebay.core.failures import PERMANENT, TRANSIENT, Failure
from forebay.core.markers import Marker, mark
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.core.sinks import SourcePartition
from forebay.engine.assembly import ledger_stages
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.stages import Topic
from forebay.engine.topics import create_topics, plan_topics
from forebay.operations.audit import Audit
from forebay.state.expired_ranges import ExpiredRange, ExpiredRanges
from forebay.state.schema import migrate
from forebay.state.sqlite.database import SqliteDatabase
from forebay.testing import FakeClock, MemoryBroker

BUSY = Failure(TRANSIENT, "the bank is busy")
BAD = Failure(PERMANENT, "no such account")


class Books:
    """A pipeline of one retried stage, and the data that its audit looks at."""

    def __init__(self, path, *, owned=True):
        self.pipeline = Pipeline("shop", topics=[Topic("orders", 2)] if owned else [])
        self.pipeline.stage("orders", name="charge", retry=["5s", "1m"])(lambda value: None)
        (self.route,) = self.pipeline.routes
        self.clock = FakeClock()
        self.broker = MemoryBroker(self.clock)
        create_topics(self.broker.admin(), plan_topics(self.pipeline), foreign_too=True)
        self.sender = self.broker.producer()
        self.state = SqliteDatabase(path)
        migrate(self.state)

    @property
    def now_ms(self):
        return int(self.clock.now() * 1000)

    def send(self, record):
        self.sender.send(record)
        (report,) = self.sender.poll(0)
        return record._replace(
            partition=report.partition, offset=report.offset, timestamp_ms=report.timestamp_ms
        )

    def produce(self, count, *, partition=0, topic="orders"):
        return [self.send(Record(b"x", b"k", [], topic, partition)) for _ in range(count)]

    def commit(self, offset, *, partition=0, topic="orders", group=None):
        stored = self.broker._store.group(group or self.route.group)
        stored.committed[TopicPartition(topic, partition)] = CommittedOffset(offset)

    def retry(self, source, tier=0):
        target = self.route.tiers[tier]
        due_ms = self.now_ms + round(target.delay_seconds * 1000)
        envelope = first_envelope(self.route.group, source).failed(
            BUSY, self.now_ms, attempt=tier + 2, due_ms=due_ms
        )
        headers = seal(source, envelope)
        return self.send(Record(source.value, source.key, headers, target.topic, 0))

    def bury(self, source):
        envelope = first_envelope(self.route.group, source).failed(BAD, self.now_ms, attempt=1)
        headers = seal(source, envelope)
        return self.send(Record(source.value, source.key, headers, str(self.route.dead_letters)))

    def tell(self, source, kind, number=1):
        id = first_envelope(self.route.group, source).id
        marker = Marker(id, self.route.group, kind, number, "r1", self.now_ms, "kim", "because")
        return self.send(mark(marker, str(self.route.dead_letters), source.key))

    def read_letters(self):
        """As the ledger's sink does."""
        topic = str(self.route.dead_letters)
        log = self.broker._store.log(TopicPartition(topic, 0))
        sink = LedgerSink(self.state, ledger_stages(self.pipeline))
        sink.commit(log.read(0, 1_000), {SourcePartition(topic, 0, "1"): log.end})
        self.commit(log.end, topic=topic, group=self.pipeline.ledger_group)

    def gap(self, start, stop, *, topic="orders", group=None, partition=0):
        gone = ExpiredRange(group or self.route.group, topic, partition, start, stop, self.now_ms)
        ExpiredRanges(self.state).record(gone)

    def account(self, *, with_state=True):
        state = self.state if with_state else None
        (account,) = Audit(self.broker, state, self.now_ms).accounts(self.pipeline)
        return account

    def counted(self, **options):
        found = self.account(**options)
        return (
            found.resolved,
            found.waiting,
            found.dead_lettered,
            found.in_flight,
            found.expired,
        )


@pytest.fixture
def books(tmp_path):
    books = Books(tmp_path / "state.db")
    yield books
    books.state.close()


@pytest.fixture
def foreign(tmp_path):
    books = Books(tmp_path / "state.db", owned=False)
    yield books
    books.state.close()


def test_what_a_group_never_read_is_in_flight(books):
    books.produce(3)
    books.produce(2, partition=1)
    assert books.counted() == (0, 0, 0, 5, 0)


def test_what_is_committed_is_resolved(books):
    books.produce(5)
    books.commit(3)
    assert books.counted() == (3, 0, 0, 2, 0)
    assert books.account().findings == ()


def test_a_retry_waits_with_its_due_time_and_is_not_resolved(books):
    first, second, _ = books.produce(3)
    books.commit(3)
    books.retry(first, tier=1)
    books.retry(second, tier=0)
    account = books.account()
    assert (account.resolved, account.waiting) == (1, 2)
    assert account.next_due_ms == books.now_ms + 5_000
    assert account.findings == ()


def test_a_retry_that_was_brought_back_no_longer_waits(books):
    (source,) = books.produce(1)
    books.retry(source)
    books.commit(1)
    books.commit(1, topic="shop-charge.retry.5s", group=books.pipeline.scheduler_group)
    books.produce(1)
    assert books.counted() == (1, 0, 0, 1, 0)
    books.commit(2)
    assert books.counted() == (2, 0, 0, 0, 0)


def test_a_retry_on_a_way_back_of_its_own_is_in_flight_and_not_resolved_yet(foreign):
    (source,) = foreign.produce(1)
    foreign.commit(1)
    again = foreign.route.re_entry("orders")
    foreign.retry(source)
    foreign.commit(1, topic="shop-charge.retry.5s", group=foreign.pipeline.scheduler_group)
    foreign.produce(1, topic=again)
    assert foreign.counted() == (0, 0, 0, 1, 0)
    foreign.commit(1, topic=again)
    assert foreign.counted() == (1, 0, 0, 0, 0)


def test_a_retry_that_nobody_brings_back_is_found(books):
    (source,) = books.produce(1)
    books.commit(1)
    books.retry(source)
    books.clock.advance(64)
    assert books.account().findings == ()
    books.clock.advance(2)
    (finding,) = books.account().findings
    assert (finding.kind, finding.topic) == ("unaccounted_offset", "shop-charge.retry.5s")
    assert "retry-scheduler" in finding.detail
    assert "due for 61 s" in finding.detail


def test_a_retry_whose_headers_say_nothing_is_due_after_its_tiers_delay(books):
    books.produce(1, topic="shop-charge.retry.1m")
    account = books.account()
    assert (account.waiting, account.next_due_ms) == (1, books.now_ms + 60_000)


def test_a_dead_letter_is_counted_where_the_ledger_has_read_it_and_where_it_has_not(books):
    first, second, _ = books.produce(3)
    books.commit(3)
    books.bury(first)
    books.read_letters()
    books.bury(second)
    assert books.counted() == (1, 0, 2, 0, 0)


def test_a_dead_letter_that_a_person_resolved_is_resolved_and_a_discarded_one_is_dead(books):
    first, second, _ = books.produce(3)
    books.commit(3)
    for source, kind in ((first, "resolved"), (second, "discarded")):
        books.bury(source)
        books.tell(source, kind)
    books.read_letters()
    assert books.counted() == (2, 0, 1, 0, 0)


@pytest.mark.parametrize("with_state", [True, False], ids=["ledger", "no ledger"])
def test_what_is_told_of_a_dead_letter_is_no_dead_letter(books, with_state):
    """Markers lie on the same topic."""
    (source, _) = books.produce(2)
    books.commit(2)
    books.bury(source)
    books.tell(source, "note")
    books.tell(source, "note", 2)
    assert books.counted(with_state=with_state) == (1, 0, 1, 0, 0)


def test_a_letter_that_failed_again_is_one_letter(books):
    (source,) = books.produce(1)
    books.commit(1)
    books.bury(source)
    books.bury(source)
    books.read_letters()
    assert books.account().dead_lettered == 1


def test_dead_letters_in_a_file_are_not_asked_of_the_broker(tmp_path):
    pipeline = Pipeline("shop")
    pipeline.stage("orders", name="charge", retry=[], dead_letters="file:dlq.csv")(
        lambda value: None
    )
    broker = MemoryBroker(FakeClock())
    create_topics(broker.admin(), plan_topics(pipeline), foreign_too=True)
    (account,) = Audit(broker, None, 0).accounts(pipeline)
    assert account.dead_lettered == 0


def test_what_retention_took_before_it_was_read_is_expired(books):
    books.produce(10)
    books.commit(2)
    books.broker.admin().trim({TopicPartition("orders", 0): 6})
    assert books.counted() == (2, 0, 0, 4, 4)
    (finding,) = books.account().findings
    assert (finding.kind, finding.from_offset, finding.to_offset) == ("expired_range", 2, 6)


def test_a_gap_that_the_stage_has_passed_is_expired_and_not_resolved(books):
    books.produce(10)
    books.broker.admin().trim({TopicPartition("orders", 0): 6})
    books.commit(10)
    books.gap(2, 6)
    assert books.counted() == (6, 0, 0, 0, 4)
    (finding,) = books.account().findings
    assert "4 records" in finding.detail


def test_a_retry_that_retention_took_from_its_tier_is_expired_and_not_resolved(books):
    sources = books.produce(3)
    books.commit(3)
    for source in sources:
        books.retry(source)
    books.broker.admin().trim({TopicPartition("shop-charge.retry.5s", 0): 2})
    assert books.counted() == (0, 1, 0, 0, 2)
    (finding,) = books.account().findings
    assert (finding.kind, finding.topic) == ("expired_range", "shop-charge.retry.5s")


def test_a_gap_in_a_tier_that_the_scheduler_has_passed_is_expired_and_not_resolved(books):
    sources = books.produce(3)
    books.commit(3)
    for source in sources:
        books.retry(source)
    tier, scheduler = "shop-charge.retry.5s", books.pipeline.scheduler_group
    books.broker.admin().trim({TopicPartition(tier, 0): 2})
    books.gap(0, 2, topic=tier, group=scheduler)
    books.commit(3, topic=tier, group=scheduler)
    assert books.counted() == (1, 0, 0, 0, 2)


def test_a_commit_beyond_the_end_is_found(books):
    books.produce(4)
    books.commit(9)
    account = books.account()
    (finding,) = account.findings
    assert (finding.kind, finding.from_offset, finding.to_offset) == ("unaccounted_offset", 4, 9)
    assert "another one" in finding.detail
    assert account.in_flight == 0


def test_a_gap_that_ends_before_it_begins_is_told_as_another_topic(books):
    """The group stood beyond the end: its topic was made again."""
    books.produce(4)
    books.commit(4)
    books.gap(90, 0)
    account = books.account()
    (finding,) = account.findings
    assert "-90" not in finding.detail
    assert "90" in finding.detail
    assert account.expired == 0


def test_gaps_of_other_groups_are_theirs(books):
    books.produce(1)
    books.commit(1)
    books.gap(0, 5, group="shop-other")
    assert books.counted() == (1, 0, 0, 0, 0)


def test_a_pipeline_that_never_ran_has_nothing_to_account_for(tmp_path):
    pipeline = Pipeline("shop")
    pipeline.stage("orders", name="charge")(lambda value: None)
    (account,) = Audit(MemoryBroker(FakeClock()), None, 0).accounts(pipeline)
    assert (account.stage, account.resolved, account.in_flight) == ("charge", 0, 0)


def test_each_stage_has_an_account_of_its_own(books):
    books.pipeline.sink("orders", name="rows", file="rows.ndjson")(lambda value: value)
    create_topics(books.broker.admin(), plan_topics(books.pipeline), foreign_too=True)
    books.produce(3)
    books.commit(1)
    books.commit(2, group="shop-rows")
    charge, rows = Audit(books.broker, None, books.now_ms).accounts(books.pipeline)
    assert (charge.resolved, charge.in_flight) == (1, 2)
    assert (rows.resolved, rows.in_flight) == (2, 1)
