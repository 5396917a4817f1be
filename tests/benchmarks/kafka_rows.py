"""The Kafka adapter beside a bare confluent-kafka loop, on the same broker in the same run."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition

from benchmarks.results import Row, Target, in_turn
from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.kafka.trial import TrialCluster
from forebay.broker.settings import KafkaSettings
from forebay.core.errors import Full
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.observability.catalogue import silent

PARTITIONS = 6
RECORDS = 150_000
WAITING_RECORDS = 500_000
VALUE, KEY = b"v" * 200, b"k" * 16
HEADERS = [("trace", b"t" * 16)]
WORKER = Path(__file__).with_name("kafka_worker.py")


class KafkaRows:
    def __init__(self, cluster: TrialCluster) -> None:
        self._bootstrap = cluster.bootstrap
        self._broker = KafkaBroker(KafkaSettings(cluster.bootstrap), silent)

    def rows(self) -> Iterator[Row]:
        yield Row(
            "kafka_consume_vs_bare",
            "ratio",
            Target(at_least=0.5),
            self.consume,
            "value, key, headers, offset and timestamp of each record read; first to last record",
        )
        yield Row(
            "kafka_produce_vs_bare",
            "ratio",
            Target(at_least=0.5),
            self.produce,
            "keyed sends with one header, every report awaited; bare: produce with a delivery "
            "callback, idempotent as ours",
        )
        yield Row(
            "kafka_prefetch_mib",
            "MiB",
            Target(at_most=64),
            self.prefetch,
            f"growth of a reader's memory beside {WAITING_RECORDS:,} waiting records",
        )

    def close(self) -> None:
        self._broker.close()

    def _topic(self) -> str:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self._broker.admin().create_topic(TopicSpec(name, PARTITIONS))
        return name

    def produce(self) -> tuple[float, dict[str, float]]:
        bare, ours = in_turn(
            lambda: self._produce_bare(self._topic(), RECORDS),
            lambda: self._produce_ours(self._topic(), RECORDS),
        )
        return ours / bare, {"ours_per_second": ours, "bare_per_second": bare}

    def consume(self) -> tuple[float, dict[str, float]]:
        topic = self._topic()
        self._produce_bare(topic, RECORDS)
        bare, ours = in_turn(lambda: self._consume_bare(topic), lambda: self._consume_ours(topic))
        return ours / bare, {"ours_per_second": ours, "bare_per_second": bare}

    def prefetch(self) -> tuple[float, dict[str, float]]:
        topic = self._topic()
        self._produce_bare(topic, WAITING_RECORDS)
        done = subprocess.run(
            [sys.executable, str(WORKER), self._bootstrap, topic, str(PARTITIONS)],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        base, most = (float(figure) for figure in done.stdout.split())
        return most - base, {"base_mib": base, "most_mib": most}

    def _produce_bare(self, topic: str, count: int) -> float:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "partitioner": "murmur2_random",
            }
        )
        reports = 0

        def reported(error, message) -> None:
            nonlocal reports
            assert error is None
            assert message.offset() >= 0
            reports += 1

        keys = [b"key-%d" % number for number in range(1_000)]
        started = time.perf_counter()
        for number in range(count):
            while True:
                try:
                    producer.produce(
                        topic, VALUE, keys[number % 1_000], headers=HEADERS, on_delivery=reported
                    )
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 500 == 0:
                producer.poll(0)
        producer.flush()
        assert reports == count
        return count / (time.perf_counter() - started)

    def _produce_ours(self, topic: str, count: int) -> float:
        producer = self._broker.producer()
        records = [Record(VALUE, b"key-%d" % number, HEADERS, topic) for number in range(1_000)]
        reports = 0
        started = time.perf_counter()
        for number in range(count):
            while True:
                try:
                    producer.send(records[number % 1_000])
                    break
                except Full:
                    reports += len(producer.poll(0.01))
            if number % 500 == 0:
                reports += len(producer.poll(0))
        final = producer.close()
        assert all(report.error is None for report in final)
        assert reports + len(final) == count
        return count / (time.perf_counter() - started)

    def _consume_bare(self, topic: str) -> float:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "bare",
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 10,
            }
        )
        consumer.assign([ClientPartition(topic, number, 0) for number in range(PARTITIONS)])
        seen, started = 0, None
        while seen < RECORDS:
            messages = consumer.consume(500, 0.2)
            started = started or (time.perf_counter() if messages else None)
            for message in messages:
                assert message.error() is None
                fields = (message.value(), message.key(), message.headers())
                place = (message.offset(), message.timestamp())
                seen += 1
        elapsed = time.perf_counter() - started
        consumer.close()
        assert fields[0] == VALUE
        assert place[0] >= 0
        return seen / elapsed

    def _consume_ours(self, topic: str) -> float:
        consumer = self._broker.consumer(None)
        consumer.assign({TopicPartition(topic, number): 0 for number in range(PARTITIONS)})
        seen, started = 0, None
        while seen < RECORDS:
            records = consumer.poll(0.2)
            started = started or (time.perf_counter() if records else None)
            for record in records:
                fields = (record.value, record.key, record.headers)
                place = (record.offset, record.timestamp_ms)
            seen += len(records)
        elapsed = time.perf_counter() - started
        consumer.close()
        assert fields[0] == VALUE
        assert place[0] >= 0
        return seen / elapsed
