"""arroyo's RunTaskInThreads, fifty threads, commits once a second."""

import threading
from collections.abc import Mapping

from arroyo import Partition, Topic
from arroyo.backends.kafka import KafkaConsumer, KafkaPayload
from arroyo.backends.kafka.configuration import build_kafka_consumer_configuration
from arroyo.commit import ONCE_PER_SECOND
from arroyo.processing import StreamProcessor
from arroyo.processing.strategies import (
    CommitOffsets,
    ProcessingStrategy,
    ProcessingStrategyFactory,
    RunTaskInThreads,
)
from arroyo.types import Commit, Message
from meter import Meter, task

AT_ONCE = 50
PENDING_MAX = 1_000


class Threads(ProcessingStrategyFactory[KafkaPayload]):
    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def create_with_partitions(
        self, commit: Commit, partitions: Mapping[Partition, int]
    ) -> ProcessingStrategy[KafkaPayload]:
        return RunTaskInThreads(self._handle, AT_ONCE, PENDING_MAX, CommitOffsets(commit))

    def _handle(self, message: Message[KafkaPayload]) -> KafkaPayload:
        self._meter()
        return message.payload


def main() -> None:
    given = task()
    meter = Meter(given.records)
    configuration = build_kafka_consumer_configuration(
        {},
        bootstrap_servers=[given.bootstrap],
        group_id=given.group,
        auto_offset_reset="earliest",
    )
    processor = StreamProcessor(
        KafkaConsumer(configuration), Topic(given.topic), Threads(meter), ONCE_PER_SECOND
    )

    def stop_when_done() -> None:
        meter.is_done.wait()
        processor.signal_shutdown()

    threading.Thread(target=stop_when_done, daemon=True).start()
    processor.run()
    meter.tell()


if __name__ == "__main__":
    main()
