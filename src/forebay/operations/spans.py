"""Parts of logs, read in no group: from offsets up to and without others."""

from collections.abc import Iterator, Mapping

from forebay.broker.port import Admin, Broker, Consumer, Watermarks
from forebay.core.errors import OffsetOutOfRange, UnknownTopic
from forebay.core.records import Offset, Record, TopicPartition

POLL_SECONDS = 0.25
RECORDS_AT_ONCE = 2_000


def watermarks_of(admin: Admin, topic: str) -> dict[TopicPartition, Watermarks]:
    """Empty for a topic that does not exist."""
    try:
        (described,) = admin.describe_topics([topic])
    except UnknownTopic:
        return {}
    places = [TopicPartition(topic, number) for number in range(described.partitions)]
    return admin.watermarks(places)


def rest_of(
    marks: Mapping[TopicPartition, Watermarks], passed: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Watermarks]:
    """What the log still holds behind where a reader stands; all of it where it never stood."""
    return {
        at: Watermarks(max(low, passed.get(at, low)), end)
        for at, (low, end) in marks.items()
        if max(low, passed.get(at, low)) < end
    }


def records_in(
    broker: Broker, spans: Mapping[TopicPartition, Watermarks]
) -> Iterator[list[Record]]:
    """In batches, in order of each partition. What retention takes meanwhile is left out."""
    wanted = {at: span for at, span in spans.items() if span.low < span.end}
    if not wanted:
        return
    consumer = broker.consumer(None)
    try:
        consumer.assign({at: span.low for at, span in wanted.items()})
        while any(consumer.position(at) < span.end for at, span in wanted.items()):
            records = _poll(consumer)
            if any(consumer.position(at) > span.end for at, span in wanted.items()):
                records = [record for record in records if record.offset < wanted[record.at].end]
            yield records
    finally:
        consumer.close()


def _poll(consumer: Consumer) -> list[Record]:
    try:
        return consumer.poll(POLL_SECONDS, RECORDS_AT_ONCE)
    except OffsetOutOfRange as gone:
        consumer.seek(gone.partition, gone.low)
        return []
