"""One process of the engine's campaign: `engine_worker.py ROLE URL FOLDER ID SHARE`."""

import faulthandler
import signal
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

from forebay.bootstrap import connect, open_site
from forebay.broker.port import Broker
from forebay.broker.settings import ConsumerSettings
from forebay.core.outcomes import Outcome, Reject, Retry, Skip
from forebay.core.records import Record
from forebay.core.retries import RetryPolicy
from forebay.engine.context import Context
from forebay.engine.pipeline import Pipeline
from forebay.engine.run import PipelineRun
from forebay.engine.stages import RecordStage, Topic
from forebay.observability.catalogue import silent
from forebay.settings import Flags, read_settings

sys.path.insert(0, str(Path(__file__).parents[1]))
from torture.ledger import Ledger, number_of, value_of

INPUT = "torture.input"
DELAY_SECONDS = 1.0
KEYS = 400
REJECTED, RETRIED, SKIPPED = {0}, {1, 2, 3}, {4}
COMMIT_SECONDS = 1.0
DRAIN_SECONDS = 8.0
DAMAGED = (1 << 64) - 1

_stopping = False


def _stop(*_: object) -> None:
    global _stopping  # noqa: PLW0603 - a signal handler has nothing else to tell
    _stopping = True


def kind_of(number: int) -> int:
    """What its handler does with a record is written in its number."""
    return number % 100


def key_of(number: int) -> bytes:
    """A key belongs to one producer, so its numbers rise in the log."""
    return b"%d-%d" % (number >> 40, number % KEYS)


def session_seconds(url: str) -> float:
    return 6.0 if url.startswith("kafka") else 2.0


def make_pipeline(ledger: Ledger | None, partitions: int, *, is_async: bool) -> Pipeline:
    """Lines are written when a handling is complete: `h` handled, `r` retry, `x` reject asked."""

    def handle(record: Record, context: Context) -> Outcome | None:
        number = number_of(record.value or b"")
        asked = None if number is None else _asked(kind_of(number), context.attempt)
        line = {Retry: "r", Reject: "x"}.get(type(asked), "h")
        place = (record.partition, record.offset, DAMAGED if number is None else number)
        if record.offset % 5 == 0:
            time.sleep(0.002)
        if ledger is not None:
            ledger.write(line, [place])
        return asked

    async def handle_async(record: Record, context: Context) -> Outcome | None:
        return handle(record, context)

    stage = RecordStage(
        name="work",
        reads=INPUT,
        run=handle_async if is_async else handle,
        order_by="key",
        concurrency=16,
        retry=RetryPolicy((DELAY_SECONDS, 3.0)),
        commit_seconds=COMMIT_SECONDS,
    )
    return Pipeline("torture", topics=[Topic(INPUT, partitions)], stages=[stage])


def _asked(kind: int, attempt: int) -> Outcome | None:
    if kind in REJECTED:
        return Reject("this one is rejected")
    if kind in RETRIED and attempt == 1:
        return Retry("this one is tried again")
    return Skip("nothing to do for it") if kind in SKIPPED else None


def produce(broker: Broker, ledger: Ledger, producer_id: int, share: str) -> int:
    """`COUNT/SECONDS`: so many records, evenly over that time, each acknowledged in the end."""
    count, _, seconds = share.partition("/")
    numbers = iter(range(producer_id << 40, (producer_id << 40) + int(count)))
    producer, begun = broker.producer(), time.monotonic()
    sent = acked = 0
    while acked < int(count):
        due = int(int(count) * min(1.0, (time.monotonic() - begun) / float(seconds)))
        for number in islice(numbers, due - sent):
            producer.send(Record(value_of(number), key_of(number), topic=INPUT), number)
        sent = due
        acked += _note_acks(ledger, producer.poll(0.05))
        time.sleep(0.02)
    return 0


def _note_acks(ledger: Ledger, reports: list) -> int:
    """A refused record ends the producer: the campaign does not hurt the broker."""
    for report in reports:
        if report.error is not None:
            raise report.error
    if reports:
        ledger.write("a", [(report.partition, report.offset, report.token) for report in reports])
    return len(reports)


def work(broker: Broker, ledger: Ledger, url: str, folder: Path, share: str) -> int:
    partitions, _, executor = share.partition("/")
    pipeline = make_pipeline(ledger, int(partitions), is_async=executor == "async")
    settings = read_settings(Flags(broker=url, folder=folder))
    consumer = ConsumerSettings(session_timeout_seconds=session_seconds(url), heartbeat_seconds=0.5)
    with open_site(settings, broker, silent) as site:
        run = PipelineRun(pipeline, replace(site, consumer=consumer), part="records")
        run.start()
        is_told = False
        while not run.wait():
            if _stopping and not is_told:
                run.stop(DRAIN_SECONDS)
                is_told = True
        return run.close().exit_code


def main() -> int:
    role, url, folder, worker_id, share = sys.argv[1:]
    signal.signal(signal.SIGTERM, _stop)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    ledger = Ledger(Path(folder) / "ledgers", role)
    broker = connect(url)
    try:
        if role == "produce":
            return produce(broker, ledger, int(worker_id), share)
        return work(broker, ledger, url, Path(folder), share)
    finally:
        broker.close()


if __name__ == "__main__":
    sys.exit(main())
