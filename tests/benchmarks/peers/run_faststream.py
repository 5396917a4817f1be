"""FastStream over confluent-kafka with manual acknowledgement, as its documentation shows it."""

import asyncio

from faststream import AckPolicy
from faststream.confluent import KafkaBroker, KafkaMessage
from meter import Meter, task


async def main() -> None:
    given = task()
    meter = Meter(given.records)
    broker = KafkaBroker(given.bootstrap, logger=None)

    @broker.subscriber(
        given.topic,
        group_id=given.group,
        auto_offset_reset="earliest",
        ack_policy=AckPolicy.MANUAL,
    )
    async def handle(body: bytes, message: KafkaMessage) -> None:
        meter()
        await message.ack()

    async with broker:
        await broker.start()
        await asyncio.to_thread(meter.is_done.wait)
    meter.tell()


if __name__ == "__main__":
    asyncio.run(main())
