"""pyrallel-consumer in key order on its asyncio engine, everything else as it comes."""

import asyncio
import logging

from meter import Meter, task
from pyrallel_consumer import PyrallelConsumer
from pyrallel_consumer.config import ExecutionConfig, KafkaConfig, ParallelConsumerConfig
from pyrallel_consumer.dto import ExecutionMode, OrderingMode, WorkItem


async def main() -> None:
    logging.disable(logging.WARNING)
    given = task()
    meter = Meter(given.records)

    async def handle(item: WorkItem) -> None:
        meter()

    configuration = KafkaConfig(
        BOOTSTRAP_SERVERS=given.bootstrap,
        CONSUMER_GROUP=given.group,
        parallel_consumer=ParallelConsumerConfig(
            ordering_mode=OrderingMode.KEY_HASH,
            execution=ExecutionConfig(mode=ExecutionMode.ASYNC),
        ),
    )
    consumer = PyrallelConsumer(configuration, handle, given.topic)
    await consumer.start()
    await asyncio.to_thread(meter.is_done.wait)
    await consumer.stop()
    meter.tell()


if __name__ == "__main__":
    asyncio.run(main())
