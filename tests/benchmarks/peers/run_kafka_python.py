"""The mod's document as it stands, on kafka-python: a poll, a queue of 200, fifty threads.

Without its logs and files; its commits are made between polls, where they are safe.
"""

import threading
import time
from queue import Empty, Queue

from kafka.structs import OffsetAndMetadata
from meter import Meter, task

from kafka import KafkaConsumer, TopicPartition

WORKERS = 50
QUEUE = 200
BATCH = 100
COMMIT_SECONDS = 5.0


def main() -> None:
    given = task()
    meter = Meter(given.records)
    waiting: Queue = Queue(QUEUE)
    processed: Queue = Queue()
    for _ in range(WORKERS):
        threading.Thread(target=work, args=(waiting, processed, meter), daemon=True).start()
    consumer = KafkaConsumer(
        bootstrap_servers=given.bootstrap,
        group_id=given.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    consumer.subscribe([given.topic])
    committed: dict[int, int] = {}
    done: dict[int, set[int]] = {}
    committed_at = time.monotonic()
    while not meter.is_done.is_set():
        for messages in consumer.poll(timeout_ms=1000, max_records=BATCH).values():
            for message in messages:
                committed.setdefault(message.partition, message.offset)
                waiting.put(message)
        if time.monotonic() - committed_at >= COMMIT_SECONDS:
            committed_at = time.monotonic()
            commit(consumer, given.topic, committed, take(processed, done))
    consumer.close(autocommit=False)
    meter.tell()


def work(waiting: Queue, processed: Queue, meter: Meter) -> None:
    while True:
        try:
            message = waiting.get(timeout=1)
        except Empty:
            continue
        assert message.value is not None
        meter()
        processed.put((message.partition, message.offset))


def take(processed: Queue, done: dict[int, set[int]]) -> dict[int, set[int]]:
    while not processed.empty():
        partition, offset = processed.get()
        done.setdefault(partition, set()).add(offset)
    return done


def commit(
    consumer: KafkaConsumer, topic: str, committed: dict[int, int], done: dict[int, set[int]]
) -> None:
    offsets = {}
    for partition, offset in committed.items():
        end = offset
        while end in done.get(partition, ()):
            done[partition].discard(end)
            end += 1
        committed[partition] = end
        offsets[TopicPartition(topic, partition)] = OffsetAndMetadata(end, "", -1)
    consumer.commit(offsets)


if __name__ == "__main__":
    main()
