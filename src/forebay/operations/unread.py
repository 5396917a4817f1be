"""Delay tiers and dead-letter topics that nobody reads: retries and dead letters would wait."""

import re
from collections.abc import Iterator

from forebay.broker.port import Admin, Broker, Finding
from forebay.core.durations import written
from forebay.core.errors import OffsetOutOfRange, UnknownGroup
from forebay.core.records import Offset, TopicPartition

UNREAD_SECONDS = 60
POLL_SECONDS = 2.0
_TIER = re.compile(r"\.retry\.(\d+)(ms|s|m|h|d)\Z")
_LETTERS = re.compile(r"\.dlq\Z")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def unread_findings(broker: Broker, now_ms: int) -> list[Finding]:
    """One per topic whose oldest unread record should have been taken a minute ago."""
    admin = broker.admin()
    topics = [topic for topic in admin.describe_topics() if _delay_ms(topic.name) is not None]
    if not topics:
        return []
    read = _furthest(admin)
    places = [
        TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)
    ]
    waiting = {
        at: max(low, read.get(at, low))
        for at, (low, end) in admin.watermarks(places).items()
        if read.get(at, low) < end
    }
    return list(_overdue(broker, waiting, now_ms))


def _overdue(
    broker: Broker, waiting: dict[TopicPartition, Offset], now_ms: int
) -> Iterator[Finding]:
    oldest: dict[str, int] = {}
    for at, offset in waiting.items():
        timestamp_ms = _timestamp_ms(broker, at, offset)
        if timestamp_ms is not None:
            oldest[at.topic] = min(timestamp_ms, oldest.get(at.topic, timestamp_ms))
    for topic, timestamp_ms in oldest.items():
        seconds = (now_ms - timestamp_ms - (_delay_ms(topic) or 0)) // 1000
        if seconds > UNREAD_SECONDS:
            yield Finding(
                f"topic {topic}",
                ok=False,
                detail=f"nobody has taken its oldest record for {written(float(seconds))}.",
                do=_what_to_do(topic),
            )


def _what_to_do(topic: str) -> str:
    if _LETTERS.search(topic):
        return "Start the pipeline, or its dlq-handler: dead letters are not in the ledger."
    return "Start the pipeline, or its retry-scheduler: retries do not come back."


def _delay_ms(topic: str) -> int | None:
    """How long its records wait by right; None for a topic of another kind."""
    if found := _TIER.search(topic):
        return int(found[1]) * _UNIT_MS[found[2]]
    return 0 if _LETTERS.search(topic) else None


def _furthest(admin: Admin) -> dict[TopicPartition, Offset]:
    """Where the group that read most of a partition stands."""
    furthest: dict[TopicPartition, Offset] = {}
    for summary in admin.list_groups():
        try:
            positions = admin.describe_group(summary.name).positions
        except UnknownGroup:
            continue
        for known in positions:
            if known.committed:
                at = known.partition
                furthest[at] = max(known.committed.offset, furthest.get(at, 0))
    return furthest


def _timestamp_ms(broker: Broker, at: TopicPartition, offset: Offset) -> int | None:
    consumer = broker.consumer(None)
    try:
        consumer.assign({at: offset})
        records = consumer.poll(POLL_SECONDS, 1)
    except OffsetOutOfRange:
        return None
    finally:
        consumer.close()
    return records[0].timestamp_ms if records else None
