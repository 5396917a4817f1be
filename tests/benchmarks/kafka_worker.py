"""A reader that looks at its own memory: `kafka_worker.py BOOTSTRAP TOPIC PARTITIONS`."""

import sys
import time
from pathlib import Path

from forebay.broker.kafka.broker import KafkaBroker
from forebay.broker.settings import KafkaSettings
from forebay.core.records import TopicPartition
from forebay.observability.catalogue import silent

WATCH_SECONDS = 6.0


def memory_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not tell its memory")


def main() -> None:
    bootstrap, topic, partitions = sys.argv[1:]
    broker = KafkaBroker(KafkaSettings(bootstrap), silent)
    consumer = broker.consumer(None)
    first = TopicPartition(topic, 0)
    consumer.assign({first: 0})
    consumer.pause([first])
    consumer.poll(1.0)
    base = most = memory_mib()
    consumer.assign({TopicPartition(topic, number): 0 for number in range(int(partitions))})
    deadline = time.monotonic() + WATCH_SECONDS
    while time.monotonic() < deadline:
        assert len(consumer.poll(1.0, max_records=10)) <= 10
        most = max(most, memory_mib())
        time.sleep(0.2)
    print(base, most)
    broker.close()


if __name__ == "__main__":
    main()
