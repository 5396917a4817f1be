"""What the audit of xact looks at, and how far each reader of it had come when it began."""

from collections.abc import Mapping
from dataclasses import dataclass

from forebay.broker.port import Broker, Watermarks
from forebay.core.durations import written
from forebay.core.records import Offset, TopicPartition
from forebay.domains.xact import tables
from forebay.domains.xact.settings import XactSettings
from forebay.engine.pipeline import Pipeline
from forebay.engine.routes import Route
from forebay.lakehouse.files.port import Files
from forebay.lakehouse.tables.port import StoredPosition, Table
from forebay.operations.spans import watermarks_of
from forebay.operations.unfinished import Unfinished
from forebay.state.port import Database

INGESTER = "event-ingester"
DOWNLOAD = "download"
UPLOAD = "upload"
WRITERS: Mapping[str, str] = {
    tables.EVENTS: "event-writer",
    tables.ATTACHMENTS: "result-processor",
    tables.FAILED: "failed-writer",
}


@dataclass(frozen=True, slots=True)
class AuditPlaces:
    """`tables` by the names in tables.py, None for one that does not exist; `state` None: no ledger
    is here. Tables must have been opened before the audit, and `files` are those of xact alone.
    """

    broker: Broker
    pipeline: Pipeline
    settings: XactSettings
    tables: Mapping[str, Table | None]
    files: Files
    state: Database | None
    now_ms: int

    def table(self, name: str) -> Table | None:
        return self.tables.get(name)

    def watermarks(self, topic: str) -> dict[TopicPartition, Watermarks]:
        return watermarks_of(self.broker.admin(), topic)

    @property
    def send_again(self) -> str:
        """What a person can do about an attachment that was followed once, for a sentence."""
        window = written(self.settings.seen_window_seconds)
        return (
            f"have the event sent with a fresh link, or as it is when {window} have passed since "
            f"it last came: until then it is skipped as a repeat"
        )

    def route(self, stage: str) -> Route:
        return next(route for route in self.pipeline.routes if route.stage == stage)


class Positions:
    """Made before anything is read: what moves on meanwhile is then found twice, never lost."""

    def __init__(self, places: AuditPlaces) -> None:
        self._places = places
        self.unfinished = Unfinished(places.broker, places.pipeline)
        self.ingested = self.unfinished.passed(places.route(INGESTER).group)
        self._stored: dict[str, dict[TopicPartition, Offset]] = {}
        self._of_others: set[str] = set()
        for table in WRITERS:
            self._read(table)

    def stored(self, table: str) -> Mapping[TopicPartition, Offset]:
        """How far a table's writer has come, as the table itself says."""
        return self._stored[table]

    def holds_others(self, table: str) -> bool:
        """Whether its writer has filled it from another topic, or an earlier one of the name."""
        return table in self._of_others

    def source_of(self, table: str) -> str:
        topics = self._places.settings.topics
        return topics.events if table == tables.EVENTS else topics.downloads_results

    def _read(self, table: str) -> None:
        topic = self.source_of(table)
        here = (topic, self._incarnation(topic))
        self._stored[table] = {}
        for source, offset in ((p.source, p.next_offset) for p in self._written(table)):
            if (source.topic, source.incarnation) == here:
                self._stored[table][TopicPartition(topic, source.partition)] = offset
            elif offset:
                self._of_others.add(table)

    def _written(self, table: str) -> list[StoredPosition]:
        """Where the table's writer stands, in all that it ever read."""
        opened = self._places.table(table)
        if opened is None:
            return []
        pipeline = self._places.pipeline
        stage = WRITERS[table]
        writers = {f"{pipeline.name}-{stage}", f"{pipeline.group_prefix}-{stage}"}
        return [position for position in opened.describe().positions if position.sink in writers]

    def _incarnation(self, topic: str) -> str | None:
        """As sinks store it; None for a topic that does not exist."""
        if not self._places.watermarks(topic):
            return None
        (described,) = self._places.broker.admin().describe_topics([topic])
        return described.id or topic
