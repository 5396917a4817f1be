"""A pipeline in a file, its broker, and a ledger with what its stages gave up."""

from contextlib import ExitStack

from forebay.bootstrap import connect, open_database
from forebay.core.envelope import read_envelope
from forebay.core.failures import Failure
from forebay.core.markers import read_marker
from forebay.core.records import Record, TopicPartition
from forebay.core.sinks import SourcePartition
from forebay.core.topics import TopicSpec
from forebay.engine.ledger import Ledger
from forebay.engine.ledger_rows import StageName
from forebay.engine.ledger_sink import LedgerSink
from forebay.state.audit_trail import AuditTrail
from unit.engine.letters_told import INPUT, LETTERS, id_of, letter, placed, source

AGAIN = "shop-charge.orders.again"
TIER = "shop-charge.retry.1s"
BOOK_LETTERS = "shop-book.dlq"
STAGES = {LETTERS: StageName("shop", "charge"), BOOK_LETTERS: StageName("shop", "book")}
TOPICS = (INPUT, "receipts", AGAIN, TIER, LETTERS, BOOK_LETTERS)
PERMANENT = Failure("permanent", "amount must be positive, not -5 of 123-45-678")

MODULE = """
from contextlib import asynccontextmanager
from dataclasses import dataclass

from forebay import Done, Pipeline, Reject

shop = Pipeline("shop")


@dataclass
class Receipt:
    paid: int


@shop.share
@asynccontextmanager
async def bank():
    yield {"name": "a bank"}


@shop.stage("orders", retry=["1s"], sensitive=["ssn"])
def charge(order: dict, context):
    if order.get("busy"):
        raise TimeoutError(f"{context.shared['bank']['name']} did not answer")
    if order["amount"] <= 0:
        return Reject(f"amount must be positive, not {order['amount']}")
    return Done(emit={"receipts": {"paid": order["amount"]}})


@shop.sink("receipts", file="book.ndjson", every="0.1s")
def book(receipt: Receipt) -> Receipt:
    return receipt
"""


class Shop:
    def __init__(self, forebay, closing: ExitStack) -> None:
        self._forebay = forebay
        (forebay.folder / "shop.py").write_text(MODULE)
        data = forebay.folder / "forebay-data"
        self.broker = connect(f"embedded:{data}", environment={})
        closing.callback(self.broker.close)
        for topic in TOPICS:
            self.broker.admin().create_topic(TopicSpec(topic))
        self.database = open_database(data / "state.db")
        closing.callback(self.database.close)
        self.ledger = Ledger(self.database)

    def __call__(self, command, *arguments, **options):
        return self._forebay("dlq", command, *arguments, **options)

    def start(self, command, *arguments):
        return self._forebay.start("dlq", command, *arguments)

    def mend(self, before, after):
        """Changes the stage's function."""
        module = self._forebay.folder / "shop.py"
        assert before in module.read_text()
        module.write_text(module.read_text().replace(before, after))

    def hide_module(self):
        (self._forebay.folder / "shop.py").rename(self._forebay.folder / "elsewhere.py")

    def give_up(self, *values, failure=PERMANENT, headers=(), first=0) -> list[str]:
        """The ids. A value of None stays null."""
        records = [
            source(number, value, headers) for number, value in enumerate(values, start=first)
        ]
        self.tell(*(letter(record, failure, at_ms=5_000 + record.offset) for record in records))
        return [id_of(record) for record in records]

    def tell(self, *records: Record) -> None:
        producer = self.broker.producer()
        producer.send_many(records)
        producer.close()
        self.fold()

    def fold(self) -> None:
        """As the ledger's worker does."""
        sink = LedgerSink(self.database, STAGES)
        for topic in self.broker.admin().describe_topics([LETTERS, BOOK_LETTERS]):
            place = SourcePartition(topic.name, 0, topic.id)
            at = sink.position([place])[place] or 0
            records = self.read(topic.name)[at:]
            sink.commit(records, {place: at + len(records)})

    def fill(self, count: int) -> None:
        """A ledger alone, without a broker: quick."""
        sink = LedgerSink(self.database, STAGES)
        letters = [
            letter(source(number, b'{"amount": 0}'), PERMANENT, at_ms=5_000 + number)
            for number in range(count)
        ]
        sink.commit(placed(letters), {})

    def read(self, topic: str) -> list[Record]:
        consumer = self.broker.consumer(None)
        consumer.assign({TopicPartition(topic, 0): 0})
        records = []
        while not consumer.at_end(TopicPartition(topic, 0)):
            records += consumer.poll(0.1)
        consumer.close()
        return records

    def markers(self):
        return [found for record in self.read(LETTERS) if (found := read_marker(record))]

    def replayed_ids(self):
        return [read_envelope(record).id for record in self.read(AGAIN)]

    def audit(self):
        return [(row.action, row.target, row.reason) for row in AuditTrail(self.database).rows()]

    def audit_rows(self, action):
        return [row for row in AuditTrail(self.database).rows() if row.action == action]
