"""CPU a record costs, over a bare client that reads the same fields of the same topic."""

import os
import time
from collections.abc import Iterator

from confluent_kafka import Consumer, Producer

from benchmarks.engine_stage import PARTITIONS, Declared, running, site_on, wait_until
from benchmarks.engine_traffic import HEADERS, KEYS, VALUE, Traffic
from benchmarks.engine_worker import measured
from benchmarks.results import Row, Target
from forebay.core.outcomes import Done
from forebay.engine.context import Context

RECORDS = 200_000
POLL_RECORDS = 500

INCLUDES = (
    "all CPU of the process, its client's threads too; no-op handler that takes the context, key "
    "order (1,000 keys), 50 at once, commits tracked and made every 0.2 s, 200-byte records with "
    "two headers from the pipeline's own topic (attempt and due time looked for), counters; bare: "
    "poll and consume(499), value, key, headers, offset and timestamp read"
)


class CostRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._topic = ""

    def rows(self) -> Iterator[Row]:
        self._topic = self._traffic.filled(PARTITIONS, RECORDS)
        for kind, most in (("threads", 5), ("async", 8)):
            yield self._row(kind, "cpu_us_over_bare", most)
            yield self._row(kind, "cpu_us_over_bare_emitter_on", most, says_all=True)
        yield Row(
            "threads_50_yielding_cpu_us_over_bare",
            "us",
            Target(at_most=20),
            lambda: self._over_bare("yielding"),
            f"{INCLUDES}; the handler calls os.stat once, which gives up the GIL and costs 1.3 us "
            "by itself",
        )
        yield Row(
            "output_cpu_us_more",
            "us",
            Target(at_most=4),
            self._output,
            "threads with one output per record, acknowledged before its source resolves, over "
            f"threads without; bare_produce: an idempotent produce with a delivery callback; "
            f"{INCLUDES}",
        )

    def _row(self, kind: str, name: str, most: float, *, says_all: bool = False) -> Row:
        emitter = "emitter on, from debug, into a file" if says_all else "emitter off"
        return Row(
            f"{kind}_{name}",
            "us",
            Target(at_most=most),
            lambda: self._over_bare(kind, says_all=says_all),
            f"{INCLUDES}; {emitter}",
        )

    def _over_bare(self, kind: str, *, says_all: bool = False) -> tuple[float, dict[str, float]]:
        bare = self._bare()
        ours = self._ours(kind, says_all=says_all)
        figures = {"bare_us": bare["cpu_us"], "ours_us": ours["cpu_us"], **_seen(ours)}
        return ours["cpu_us"] - bare["cpu_us"], figures

    def _output(self) -> tuple[float, dict[str, float]]:
        without = self._ours("threads")
        ours = self._ours("output", out=self._traffic.topic(PARTITIONS))
        alone = measured(
            "cost",
            "bare_produce",
            bootstrap=self._traffic.bootstrap,
            topic=self._traffic.topic(PARTITIONS),
        )
        figures = {
            "without_us": without["cpu_us"],
            "with_us": ours["cpu_us"],
            "bare_produce_us": alone["cpu_us"],
        }
        return ours["cpu_us"] - without["cpu_us"], figures | _seen(ours)

    def _bare(self) -> dict[str, float]:
        return measured("cost", "bare", bootstrap=self._traffic.bootstrap, topic=self._topic)

    def _ours(self, kind: str, *, says_all: bool = False, out: str = "") -> dict[str, float]:
        return measured(
            "cost",
            "ours",
            bootstrap=self._traffic.bootstrap,
            topic=self._topic,
            pipeline=self._traffic.new_name("cost"),
            kind=kind,
            says_all=says_all,
            out=out,
        )


def _seen(ours: dict[str, float]) -> dict[str, float]:
    return {name: ours[name] for name in ("wall_us", "handled", "emitted", "commits")}


def bare(bootstrap: str, topic: str) -> dict[str, float]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"bare-{os.getpid()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.subscribe([topic])
    seen = before = 0
    cpu = wall = 0.0
    while seen < RECORDS:
        first = consumer.poll(1.0)
        if first is None:
            continue
        for message in (first, *consumer.consume(POLL_RECORDS - 1, 0)):
            assert message.error() is None
            fields = (message.value(), message.key(), message.headers())
            place = (message.offset(), message.timestamp())
            seen += 1
        if not before:
            before, cpu, wall = seen, time.process_time(), time.perf_counter()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    consumer.close()
    assert fields
    assert place
    return _per_record(cpu, wall, seen - before)


def bare_produce(bootstrap: str, topic: str) -> dict[str, float]:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "partitioner": "murmur2_random",
        }
    )
    producer.list_topics(topic)
    reports = 0

    def reported(error: object, message: object) -> None:
        nonlocal reports
        reports += error is None

    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(RECORDS):
        key = KEYS[number % len(KEYS)]
        while True:
            try:
                producer.produce(topic, VALUE, key, headers=HEADERS, on_delivery=reported)
                break
            except BufferError:
                producer.poll(0.01)
        if number % POLL_RECORDS == 0:
            producer.poll(0)
    producer.flush(60)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert reports == RECORDS
    return _per_record(cpu, wall, reports)


def ours(
    bootstrap: str, topic: str, pipeline: str, kind: str, *, says_all: bool, out: str
) -> dict[str, float]:
    def without_work(payload: bytes, context: Context) -> None: ...

    async def without_work_async(payload: bytes, context: Context) -> None: ...

    def yielding(payload: bytes, context: Context) -> None:
        os.stat("/")  # noqa: PTH116  nothing around the call that gives up the GIL

    def emitting(payload: bytes, context: Context) -> Done:
        return Done(emit={out: payload})

    functions = {
        "threads": without_work,
        "async": without_work_async,
        "yielding": yielding,
        "output": emitting,
    }
    options = {"emits": [out]} if out else {}
    declared = Declared(pipeline, topic, functions[kind], options=options)
    with (
        site_on(bootstrap, says_all=says_all) as site,
        running(declared.pipeline(), site) as loop,
    ):
        counters = loop.counters
        wait_until(lambda: counters.handled > 0, "first record")
        before, cpu, wall = counters.handled, time.process_time(), time.perf_counter()
        wait_until(lambda: counters.handled >= RECORDS, f"{RECORDS} records")
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        figures = _per_record(cpu, wall, counters.handled - before)
        told = {"emitted": counters.emitted, "commits": counters.commits}
        return figures | told


def _per_record(cpu: float, wall: float, records: int) -> dict[str, float]:
    return {"cpu_us": cpu / records * 1e6, "wall_us": wall / records * 1e6, "handled": records}
