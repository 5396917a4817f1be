"""Retries that fall due over a minute: none early, and how late they reach their stage."""

import statistics
import struct
import time
from collections.abc import Iterator
from functools import cache

from benchmarks.engine_stage import Declared, prepare, running, site_on, wait_until
from benchmarks.engine_traffic import HEADERS, KEYS, VALUE_BYTES, Traffic
from benchmarks.engine_worker import measured
from benchmarks.results import Row, Target
from forebay.broker.port import Producer
from forebay.core.envelope import first_envelope, seal
from forebay.core.errors import Full
from forebay.core.failures import TRANSIENT, Failure
from forebay.core.records import Record
from forebay.engine.context import Context
from forebay.engine.pipeline import Pipeline

RECORDS = 100_000
OVER_SECONDS = 60.0
TIER = "90s"
LEAD_SECONDS = 12.0
_DUE = struct.Struct("<d")
_PADDING = b"v" * (VALUE_BYTES - _DUE.size)
_FAILURE = Failure(TRANSIENT, "The vendor answered 503.", "Unavailable", "Traceback\n" + "x" * 400)


class RedeliveryRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._once = cache(self._measured)

    def rows(self) -> Iterator[Row]:
        scheduled = (
            f"{RECORDS:,} records in a tier, due over {OVER_SECONDS:g} s, lag gate on, scheduler "
            "and a no-op stage in one process, the stage reads the topic they come back on"
        )
        yield Row(
            "redelivery_early",
            "records",
            Target(at_most=0),
            lambda: self._figure("early"),
            f"sent back or handled before they were due; {scheduled}",
            runs=1,
        )
        yield Row(
            "redelivery_late_p99_s",
            "s",
            Target(at_most=1),
            lambda: self._figure("late_p99_s"),
            f"due to handler's start; {scheduled}",
            runs=1,
        )

    def _figure(self, name: str) -> tuple[float, dict[str, float]]:
        told = self._once()
        return told[name], told

    def _measured(self) -> dict[str, float]:
        told = measured(
            "redelivery",
            "ours",
            bootstrap=self._traffic.bootstrap,
            topic=self._traffic.topic(4),
            name=self._traffic.new_name("redelivery"),
        )
        if told["distinct"] != RECORDS:
            raise RuntimeError(f"only {told['distinct']:g} of {RECORDS} came back")
        return told


def ours(bootstrap: str, topic: str, name: str) -> dict[str, float]:
    late: list[float] = []
    seen: set[bytes] = set()
    sent_early = 0

    def note(payload: bytes, context: Context) -> None:
        nonlocal sent_early
        now = time.time()
        due = _DUE.unpack_from(payload)[0]
        late.append(now - due)
        seen.add(payload[: _DUE.size])
        sent_early += context.record.timestamp_ms < int(due * 1000)

    declared = Declared(name, topic, note, options={"retry": [TIER]})
    pipeline = declared.pipeline()
    with site_on(bootstrap) as site:
        prepare(pipeline, site.broker)
        _schedule(pipeline, site.broker.producer(), topic)
        with running(pipeline, site, part="records") as loop:
            wait_until(lambda: loop.counters.handled >= RECORDS, f"{RECORDS} retries")
    hundredths = statistics.quantiles(late, n=100)
    return {
        "early": sum(seconds < 0 for seconds in late) + sent_early,
        "late_p50_s": hundredths[49],
        "late_p99_s": hundredths[98],
        "late_most_s": max(late),
        "handled": len(late),
        "distinct": len(seen),
    }


def _schedule(pipeline: Pipeline, producer: Producer, topic: str) -> None:
    """As the stage's settler would have written them."""
    (stage,) = pipeline.record_stages
    route = pipeline.route(stage)
    (tier,) = route.tiers
    now_ms = int(time.time() * 1000)
    first_due = time.time() + LEAD_SECONDS
    for number in range(RECORDS):
        due = first_due + number * OVER_SECONDS / RECORDS
        key = KEYS[number % len(KEYS)]
        source = Record(_DUE.pack(due) + _PADDING, key, HEADERS, topic, 0, number, now_ms)
        envelope = first_envelope(route.group, source)
        going = envelope.failed(_FAILURE, now_ms, attempt=2, due_ms=int(due * 1000) + 1)
        _send(producer, Record(source.value, key, seal(source, going), tier.topic))
    reports = producer.close(30.0)
    assert all(report.error is None for report in reports)
    assert time.time() < first_due, "it took too long to schedule them"


def _send(producer: Producer, record: Record) -> None:
    while True:
        try:
            producer.send(record)
            return
        except Full:
            producer.poll(0.01)
