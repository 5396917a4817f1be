"""A pipeline looked at while it is written: real records, nothing sent, stored or committed."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from forebay.broker.port import Admin, Report
from forebay.core.records import Offset, Record, TopicPartition
from forebay.core.sinks import SourcePartition
from forebay.engine.idle import committed_of
from forebay.engine.routes import Route
from forebay.engine.stages import StartAt

Shown: TypeAlias = Callable[[str, Any], None]


class ShowingProducer:
    """Says what would be sent, and acknowledges it."""

    def __init__(self, show: Shown) -> None:
        self._show = show
        self._reports: deque[Report] = deque()

    @property
    def outstanding(self) -> int:
        return len(self._reports)

    def send(self, record: Record, token: object = None) -> None:
        self._show(record.topic, record)
        self._reports.append(Report(token, record.topic, 0, -1, -1, None))

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        for record in records:
            self.send(record, token)
        return len(records)

    def poll(self, timeout_seconds: float) -> list[Report]:  # noqa: ARG002 - the port's
        reports = list(self._reports)
        self._reports.clear()
        return reports

    def flush(self, timeout_seconds: float) -> int:  # noqa: ARG002 - the port's
        return 0

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:  # noqa: ARG002 - the port's
        return self.poll(0)


class ShowingSink:
    """Says what would be stored. It has no position: reading begins where the run says."""

    def __init__(self, name: str, show: Shown) -> None:
        self._name = name
        self._show = show

    def position(
        self, partitions: Collection[SourcePartition]
    ) -> Mapping[SourcePartition, Offset | None]:
        return dict.fromkeys(partitions)

    def commit(self, rows: Sequence[Any], next_offsets: Mapping[SourcePartition, Offset]) -> None:  # noqa: ARG002 - the port's
        for row in rows:
            self._show(self._name, row)

    def close(self) -> None:
        """Nothing is open."""


def positions_by_hand(
    admin: Admin, route: Route, start_at: StartAt
) -> dict[TopicPartition, Offset]:
    """Where the group would go on, without joining it."""
    committed = committed_of(admin, route.group)
    positions: dict[TopicPartition, Offset] = {}
    for at, (low, end) in _watermarks(admin, route.inputs).items():
        begin = end if start_at == "latest" else low
        positions[at] = min(max(committed.get(at, begin), low), end)
    return positions


def without_files(route: Route) -> Route:
    """Dead letters are shown as if they went to a topic."""
    if route.dead_letter_topic is not None:
        return route
    return replace(route, dead_letters=f"{route.group}.dlq")


def _watermarks(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, Any]:
    places = [
        TopicPartition(topic.name, number)
        for topic in admin.describe_topics(list(topics))
        for number in range(topic.partitions)
    ]
    return dict(admin.watermarks(places))
