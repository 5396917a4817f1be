"""Records for the engine's rows: a topic that is filled before, or a trickle while one reads."""

import random
import struct
import time
import uuid
from collections.abc import Callable
from itertools import count

from confluent_kafka import Producer

from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.settings import KafkaSettings
from forebay.core.topics import TopicSpec
from forebay.observability.catalogue import silent

VALUE_BYTES = 200
VALUE = b"v" * VALUE_BYTES
HEADERS = [("trace_id", b"t" * 16), ("source", b"s" * 16)]
KEYS = [b"key-%04d" % number for number in range(1_000)]
ANY_PARTITION = -1
_SENT_AT = struct.Struct("<q")
_PADDING = b"v" * (VALUE_BYTES - _SENT_AT.size)


def sent_at_ns(value: bytes) -> int:
    """On the monotonic clock, which all processes of a machine share."""
    return _SENT_AT.unpack_from(value)[0]


def timed_value() -> bytes:
    return _SENT_AT.pack(time.monotonic_ns()) + _PADDING


class Traffic:
    """Sends with the bare client, so that what is measured has no part in it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._broker = KafkaBroker(KafkaSettings(bootstrap), silent)
        self._numbers = count()

    def close(self) -> None:
        self._broker.close()

    def new_name(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}-{uuid.uuid4().hex[:6]}"

    def topic(self, partitions: int) -> str:
        name = self.new_name("bench")
        self._broker.admin().create_topic(TopicSpec(name, partitions))
        return name

    def filled(self, partitions: int, records: int) -> str:
        topic = self.topic(partitions)
        self.fill(topic, records)
        return topic

    def fill(self, topic: str, records: int, partition: int = ANY_PARTITION) -> None:
        producer = self._producer(linger_ms=20)
        for number in range(records):
            key = KEYS[number % len(KEYS)]
            while True:
                try:
                    producer.produce(topic, VALUE, key, partition, headers=HEADERS)
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 1_000 == 0:
                producer.poll(0)
        _flush(producer)

    def trickle(
        self,
        topic: str,
        *,
        per_second: float,
        records: int,
        keys: int = len(KEYS),
        wanted: Callable[[], bool] = lambda: True,
    ) -> int:
        """Arrivals by chance, as they come in life; says how many it sent."""
        chance = random.Random(per_second)
        producer = self._producer(linger_ms=0)
        due = time.monotonic()
        sent = 0
        while sent < records and wanted():
            due += chance.expovariate(per_second)
            time.sleep(max(0.0, due - time.monotonic()))
            key = KEYS[chance.randrange(keys)]
            producer.produce(topic, timed_value(), key, headers=HEADERS)
            producer.poll(0)
            sent += 1
        _flush(producer)
        return sent

    def _producer(self, *, linger_ms: int) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "acks": "all",
                "linger.ms": linger_ms,
                "partitioner": "murmur2_random",
            }
        )


def _flush(producer: Producer) -> None:
    if left := producer.flush(60):
        raise RuntimeError(f"{left} records were not acknowledged")
