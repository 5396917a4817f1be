"""Where in a log: an offset, a time, or one of its ends."""

import time
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from forebay.broker.port import Admin, Broker, TopicDescription, Watermarks
from forebay.cli.times import time_ms
from forebay.core.errors import UnknownPartition
from forebay.core.records import Offset, TopicPartition

Held: TypeAlias = Mapping[TopicPartition, Watermarks]


class AtTime(NamedTuple):
    timestamp_ms: int


Place: TypeAlias = Literal["earliest", "latest"] | Offset | AtTime


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def parse_place(text: str) -> Place:
    written = text.strip().lower()
    if written == "earliest":
        return "earliest"
    if written == "latest":
        return "latest"
    if written.isascii() and written.isdigit():
        return int(written)
    return AtTime(time_ms(text, now_ms()))


def partitions_of(topic: TopicDescription) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for number in range(topic.partitions)]


def look_at(admin: Admin, name: str) -> tuple[TopicDescription, dict[TopicPartition, Watermarks]]:
    topic = admin.describe_topics([name])[0]
    return topic, admin.watermarks(partitions_of(topic))


def chosen_partitions(held: Held, partition: int | None) -> dict[TopicPartition, Watermarks]:
    if partition is None:
        return dict(held)
    chosen = {place: marks for place, marks in held.items() if place.partition == partition}
    if not chosen:
        topic = next(iter(held)).topic
        raise UnknownPartition(
            f"Topic {topic} has no partition {partition}; it has 0 to {len(held) - 1}."
        )
    return chosen


def offsets_at(broker: Broker, held: Held, place: Place) -> dict[TopicPartition, Offset]:
    match place:
        case "earliest":
            return {partition: marks.low for partition, marks in held.items()}
        case "latest":
            return {partition: marks.end for partition, marks in held.items()}
        case AtTime(timestamp_ms):
            return _offsets_for_time(broker, held, timestamp_ms)
        case _:
            return dict.fromkeys(held, place)


def _offsets_for_time(
    broker: Broker, held: Held, timestamp_ms: int
) -> dict[TopicPartition, Offset]:
    consumer = broker.consumer(None)
    try:
        return {place: consumer.offset_for_time(place, timestamp_ms) for place in held}
    finally:
        consumer.close()
