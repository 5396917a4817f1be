"""One process of the campaign: `worker.py ROLE FOLDER LEDGERS ID`, until SIGTERM."""

import faulthandler
import signal
import sys
import time
from pathlib import Path

from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import ConsumerSettings, EmbeddedSettings
from forebay.core.errors import CommitFailed, Full, Unavailable
from forebay.core.records import CommittedOffset, Record, TopicPartition

sys.path.insert(0, str(Path(__file__).parents[1]))
from torture.ledger import Ledger, number_of, value_of

TOPIC = "torture"
GROUP = "torturers"
PARTITIONS = 12
BATCH = 100
SESSION_SECONDS = 2.0

_stopping = False


def _stop(*_: object) -> None:
    global _stopping  # noqa: PLW0603 - a signal handler has nothing else to tell
    _stopping = True


def produce(broker: EmbeddedBroker, ledger: Ledger, producer_id: int) -> None:
    """Numbers rise for ever; the high bits tell the producer, so that restarts go on."""
    producer = broker.producer()
    number = producer_id << 40
    while not _stopping:
        records = [
            Record(value_of(number + at), key=b"key-%d" % (at % 50), topic=TOPIC)
            for at in range(BATCH)
        ]
        try:
            producer.send_many(records, number)
            number += BATCH
        except Full:
            pass
        _note_acks(ledger, producer.poll(1.0 if producer.outstanding > 5 * BATCH else 0.0))
        if not _is_bursting(number):
            time.sleep(0.02)
    _note_acks(ledger, producer.close())


def _is_bursting(number: int) -> bool:
    """One batch in eight hundred starts a burst of a hundred at full speed."""
    return number // BATCH % 800 < 100


def _note_acks(ledger: Ledger, reports: list) -> None:
    # The reports of a batch come together and in the order of its records.
    acked = [
        (report.partition, report.offset, report.token + at % BATCH)
        for at, report in enumerate(reports)
        if report.error is None
    ]
    if acked:
        ledger.write("a", acked)


class Story:
    """Starts where the group stands and notes what it is given."""

    def __init__(self, consumer, ledger: Ledger) -> None:
        self._consumer = consumer
        self._ledger = ledger

    def assigned(self, committed) -> None:
        for partition, known in committed.items():
            start = 0 if known is None else known.offset
            self._consumer.seek(partition, start)
            self._ledger.write("o", [(partition.partition, start, 0)])

    def revoked(self, partitions) -> None:
        pass

    def lost(self, partitions) -> None:
        pass


def consume(broker: EmbeddedBroker, ledger: Ledger, _: int) -> None:
    settings = ConsumerSettings(session_timeout_seconds=SESSION_SECONDS)
    consumer = broker.consumer(GROUP, settings)
    consumer.subscribe([TOPIC], Story(consumer, Ledger(ledger.folder, "owners")))
    while not _stopping:
        try:
            records = consumer.poll(0.2)
            if records:
                _handle(consumer, ledger, records)
        except Unavailable as error:
            print(f"consumer: {error}", file=sys.stderr)
    consumer.close()


def _handle(consumer, ledger: Ledger, records: list[Record]) -> None:
    numbers = [number_of(record.value or b"") for record in records]
    ledger.write(
        "d",
        [
            (record.partition, record.offset, (1 << 63) if number is None else number)
            for record, number in zip(records, numbers, strict=True)
        ],
    )
    offsets = {record.at: CommittedOffset(record.offset + 1) for record in records}
    refused = set()
    try:
        consumer.commit(offsets)
    except CommitFailed as error:
        refused = set(error.failures)
    ledger.write("c", [(p.partition, o.offset, 0) for p, o in offsets.items() if p not in refused])


def read_slowly(broker: EmbeddedBroker, ledger: Ledger, _: int) -> None:
    """One record at a time, from the beginning: what keeps a WAL from starting over."""
    consumer = broker.consumer(None)
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    consumer.assign(dict.fromkeys(partitions, 0))
    while not _stopping:
        consumer.poll(0.2, max_records=1)
        time.sleep(0.01)


ROLES = {"produce": produce, "consume": consume, "read_slowly": read_slowly}


def main() -> None:
    role, folder, ledgers, worker_id = sys.argv[1:]
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGTERM, _stop)
    broker = EmbeddedBroker(EmbeddedSettings(Path(folder)))
    ledger = Ledger(Path(ledgers), role)
    ROLES[role](broker, ledger, int(worker_id))
    broker.close()


if __name__ == "__main__":
    main()
