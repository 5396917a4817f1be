"""confluent-kafka alone: poll, then consume what is there; commits nothing."""

from confluent_kafka import Consumer
from meter import Meter, task

POLL_RECORDS = 500


def main() -> None:
    given = task()
    meter = Meter(given.records)
    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap,
            "group.id": given.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.subscribe([given.topic])
    while not meter.is_done.is_set():
        first = consumer.poll(1.0)
        if first is None:
            continue
        for message in (first, *consumer.consume(POLL_RECORDS - 1, 0)):
            assert message.error() is None
            fields = (message.value(), message.key(), message.headers())
            place = (message.offset(), message.timestamp())
            meter()
    consumer.close()
    assert fields
    assert place
    meter.tell()


if __name__ == "__main__":
    main()
