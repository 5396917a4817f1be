"""One process of the demo: `python -m forebay.cli.demo.worker ORDERS`, ORDERS being JSON."""

import json
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from forebay.bootstrap import connect
from forebay.broker.port import Consumer, Producer
from forebay.broker.settings import ConsumerSettings
from forebay.cli.demo.ledger import Handled, Ledger
from forebay.core.errors import CommitFailed, Fenced, Full, Unavailable
from forebay.core.records import CommittedOffset, Record, TopicPartition

POLL_SECONDS = 0.1
BATCH_SECONDS = 0.01
SESSION_SECONDS = 6.0  # Kafka's own lower bound


@dataclass(frozen=True, slots=True)
class Orders:
    """`events` 0 makes a consumer; `rate` 0 is as fast as it goes."""

    name: str
    broker: str
    topic: str
    group: str
    ledger: str
    parent: int
    events: int = 0
    rate: float = 0.0

    def as_argument(self) -> str:
        return json.dumps(asdict(self))


class Worker:
    """Ends when told by SIGTERM, or when the process that started it is gone."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._is_told_to_end = False

    def end(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        self._is_told_to_end = True

    @property
    def goes_on(self) -> bool:
        return not self._is_told_to_end and os.getppid() == self._orders.parent


def produce(worker: Worker, orders: Orders, producer: Producer, ledger: Ledger) -> None:
    for batch in paced(orders.events, orders.rate):
        for number in batch:
            send(producer, ledger, _record(orders, number))
        note_acknowledged(ledger, producer, 0)
        if not worker.goes_on:
            return
    while producer.outstanding and worker.goes_on:
        note_acknowledged(ledger, producer, POLL_SECONDS)


def paced(events: int, rate: float) -> Iterator[range]:
    """Numbers in small batches, each when it is due."""
    started = time.monotonic()
    sent = 0
    while sent < events:
        due = int((time.monotonic() - started) * rate) + 1 if rate else sent + 100
        upto = min(events, due)
        yield range(sent, upto)
        if upto == sent:
            time.sleep(BATCH_SECONDS)
        sent = upto


def send(producer: Producer, ledger: Ledger, record: Record) -> None:
    while True:
        try:
            return producer.send(record, token=(record.key or b"").decode())
        except Full:
            note_acknowledged(ledger, producer, POLL_SECONDS)


def note_acknowledged(ledger: Ledger, producer: Producer, timeout_seconds: float) -> None:
    reports = producer.poll(timeout_seconds)
    ledger.produced(str(report.token) for report in reports if report.error is None)


class Listener:
    """Starts where the group left off, or at the beginning; tells the ledger what it owns."""

    def __init__(self, consumer: Consumer, ledger: Ledger) -> None:
        self._consumer = consumer
        self._ledger = ledger
        self._owned: set[int] = set()

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        for place, offset in committed.items():
            if offset is None:
                self._consumer.seek(place, self._consumer.watermarks(place).low)
        self._owned |= {place.partition for place in committed}
        self._ledger.owns(self._owned)

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._owned -= {place.partition for place in partitions}
        self._ledger.owns(self._owned)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        self.revoked(partitions)


def consume(worker: Worker, orders: Orders, consumer: Consumer, ledger: Ledger) -> None:
    consumer.subscribe([orders.topic], Listener(consumer, ledger))
    while worker.goes_on:
        try:
            records = consumer.poll(POLL_SECONDS)
            handle(records, consumer, ledger)
        except (CommitFailed, Fenced, Unavailable):
            continue  # what was not committed comes again, and the audit counts it as repeated


def handle(records: list[Record], consumer: Consumer, ledger: Ledger) -> None:
    """First the work is on record, then its offsets: a kill in between repeats, never loses."""
    if not records:
        return
    ledger.handled(
        Handled((record.key or b"").decode(), record.partition, time.monotonic_ns())
        for record in records
    )
    consumer.commit({record.at: CommittedOffset(record.offset + 1) for record in records})


def _record(orders: Orders, number: int) -> Record:
    id_ = f"{orders.name}-{number}"
    value = json.dumps({"id": id_, "text": "a demo event"}).encode()
    return Record(value, key=id_.encode(), topic=orders.topic)


def main() -> None:
    orders = Orders(**json.loads(sys.argv[1]))
    worker = Worker(orders)
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group; the parent ends us
    signal.signal(signal.SIGTERM, worker.end)
    ledger = Ledger(Path(orders.ledger))
    broker = connect(orders.broker)
    try:
        if orders.events:
            produce(worker, orders, broker.producer(), ledger)
        else:
            settings = ConsumerSettings(orders.name, session_timeout_seconds=SESSION_SECONDS)
            consume(worker, orders, broker.consumer(orders.group, settings), ledger)
    finally:
        broker.close()


if __name__ == "__main__":
    main()
