"""A client in a process of its own: consumes or produces until it is told to finish.

`member.py consume URL GROUP TOPIC` or `member.py produce URL TOPIC`. It prints what happens as JSON
lines and does what the JSON lines of its standard input ask.
"""

import json
import queue
import sys
import threading
from collections.abc import Collection, Mapping

from forebay.bootstrap import connect
from forebay.broker.port import Broker, Consumer, Report
from forebay.broker.settings import ConsumerSettings
from forebay.core.errors import CommitFailed
from forebay.core.records import CommittedOffset, Record, TopicPartition

SETTINGS = ConsumerSettings(session_timeout_seconds=1.5, heartbeat_seconds=0.1)


def say(**said: object) -> None:
    print(json.dumps(said), flush=True)


def requests() -> "queue.SimpleQueue[dict]":
    asked: queue.SimpleQueue[dict] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            asked.put(json.loads(line))
        asked.put({"finish": True})

    threading.Thread(target=listen, daemon=True).start()
    return asked


class Listener:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        for partition, known in committed.items():
            if known is None:
                self._consumer.seek(partition, self._consumer.watermarks(partition).low)
        say(assigned=sorted(committed))

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        say(revoked=sorted(partitions))

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        say(lost=sorted(partitions))


def consume(broker: Broker, group: str, topic: str) -> None:
    asked = requests()
    consumer = broker.consumer(group, SETTINGS)
    consumer.subscribe([topic], Listener(consumer))
    while True:
        if records := consumer.poll(0.2):
            say(read=[record.offset for record in records])
        while not asked.empty():
            request = asked.get()
            if "finish" in request:
                return
            commit(consumer, TopicPartition(topic, request["partition"]), request["commit"])


def commit(consumer: Consumer, partition: TopicPartition, offset: int) -> None:
    try:
        consumer.commit({partition: CommittedOffset(offset)})
    except CommitFailed as error:
        say(refused=[type(failure).__name__ for failure in error.failures.values()])
    else:
        say(committed=[offset])


def produce(broker: Broker, topic: str) -> None:
    """Numbers, some thousand a second, until asked to finish."""
    asked = requests()
    producer = broker.producer()
    number = 0
    while asked.empty():
        for _ in range(10):
            producer.send(Record(b"%d" % number, topic=topic, partition=0), number)
            number += 1
        say_acked(producer.poll(0.01))
        while producer.outstanding > 1000:
            say_acked(producer.poll(0.1))
    say_acked(producer.close(30))
    say(sent=[number])


def say_acked(reports: list[Report]) -> None:
    say(acked=[report.token for report in reports if report.error is None])


def main(task: str, url: str, *names: str) -> None:
    broker = connect(url)
    {"consume": consume, "produce": produce}[task](broker, *names)
    broker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
