"""A world of xact as its pipeline leaves it, made by hand: topics, rows, files and letters."""

import hashlib
from dataclasses import dataclass, field

import orjson

from forebay.core.envelope import first_envelope, seal
from forebay.core.failures import PERMANENT, Failure
from forebay.core.records import Record, TopicPartition
from forebay.core.sinks import SourcePartition
from forebay.domains.xact import tables
from forebay.domains.xact.audit import XactAudit
from forebay.domains.xact.audit_places import WRITERS, AuditPlaces
from forebay.domains.xact.messages import CachedDownload, DownloadResult, read_event
from forebay.domains.xact.paths import destinations
from forebay.domains.xact.pipeline import xact_pipeline
from forebay.domains.xact.settings import XactSettings
from forebay.domains.xact.tables import event_row, failed_row, stored_row
from forebay.engine.assembly import ledger_stages
from forebay.engine.ledger_sink import LedgerSink
from forebay.engine.topics import create_topics, plan_topics
from forebay.lakehouse.files.port import FileStat
from forebay.lakehouse.tables.port import (
    StoredPosition,
    TableColumn,
    TableDescription,
    TableSummary,
)
from forebay.operations.domain_audit import AuditRequest
from forebay.testing import FakeClock

NO_FILE = Failure(PERMANENT, "there is no such file (404)")
BROKEN = Failure("undecodable", "The event is no JSON.")
COLUMNS = {
    tables.EVENTS: tables.EVENT_COLUMNS,
    tables.ATTACHMENTS: tables.ATTACHMENT_COLUMNS,
    tables.FAILED: tables.FAILED_COLUMNS,
}


def url(number, name="file.pdf"):
    return f"https://files.example/{number}/{name}?X-Amz-Signature=secret{number}"


@dataclass
class MemoryTable:
    """Rows that a test may alter, on the port of tables."""

    columns: tuple
    day: str
    items: list = field(default_factory=list)
    stored: dict = field(default_factory=dict)
    read: list = field(default_factory=list)

    @property
    def location(self):
        return "memory"

    def summary(self):
        return TableSummary(1, len(self.items), 1, 1, None)

    def describe(self):
        columns = tuple(TableColumn(name, "string", nullable=True) for name in self.columns)
        positions = tuple(
            StoredPosition(sink, source, offset) for (sink, source), offset in self.stored.items()
        )
        return TableDescription(self.summary(), columns, (self.day,), (), 1, positions)

    def history(self, limit):
        return []

    def verify(self, key, progress):
        return iter(())

    def rows(self, columns, partitions=(), batch=50_000):
        self.read.append(tuple(partitions))
        found = [row for row in self.items if not partitions or row[self.day] in partitions]
        for at in range(0, len(found), 2):
            yield [tuple(row[name] for name in columns) for row in found[at : at + 2]]


class MemoryFiles:
    """Names and content, on the port of files."""

    def __init__(self):
        self.held = {}

    async def put(self, source, name, *, size, sha256):
        self.held[name] = source.read_bytes()

    async def stat(self, name):
        return FileStat(name, len(self.held[name])) if name in self.held else None

    async def holds(self, name, *, size, sha256):
        return name in self.held

    def list(self, prefix=""):
        return iter([FileStat(name, len(content)) for name, content in self.held.items()])

    def digest(self, name):
        if name not in self.held:
            return None
        content = self.held[name]
        return FileStat(name, len(content), hashlib.sha256(content).hexdigest())

    def sweep(self, older_than):
        return 0

    async def close(self):
        pass


class World:
    """`broker` on any port; rows, files and letters are kept where the test can reach them."""

    def __init__(self, broker, state=None, clock=None):
        self.clock = clock or FakeClock()
        self.settings = XactSettings()
        self.topics = self.settings.topics
        self.pipeline = xact_pipeline(self.settings, lambda: None, self.clock)
        self.broker = broker
        self.state = state
        self.admin = broker.admin()
        create_topics(self.admin, plan_topics(self.pipeline), foreign_too=True)
        self.sender = broker.producer()
        self.files = MemoryFiles()
        self.tables = {
            name: MemoryTable(
                tuple(columns), "created_date" if name == tables.FAILED else "event_date"
            )
            for name, columns in COLUMNS.items()
        }
        self.known = set()

    @property
    def now_ms(self):
        return int(self.clock.now() * 1000)

    def route(self, stage):
        return next(route for route in self.pipeline.routes if route.stage == stage)

    def send(self, value, topic=None, *, key=b"k", headers=(), partition=0):
        body = value if isinstance(value, bytes | None) else orjson.dumps(value)
        record = Record(body, key, headers, topic or self.topics.events, partition)
        self.sender.send(record)
        self.sender.flush(10)
        (report,) = self.sender.poll(5)
        assert report.error is None
        return record._replace(
            partition=report.partition, offset=report.offset, timestamp_ms=report.timestamp_ms
        )

    def event(self, trace, urls=(), *, at="2026-11-18T09:10:00Z", assignment="A-1", **options):
        """A record of the raw topic, and its row."""
        data = {"assignmentId": assignment, "attachments": list(urls)}
        body = {"traceId": trace, "type": "x.documentsReceived", "utcDateTime": at, "data": data}
        record = self.send({k: v for k, v in body.items() if v is not None}, **options)
        row = event_row(record)
        key = (row["trace_id"], row["attachments"])
        if key not in self.known:
            self.known.add(key)
            self.items(tables.EVENTS).append(row)
        return record

    def items(self, table):
        return self.tables[table].items

    def cached(self, record, link):
        event = read_event(record)
        content = f"content of {link}".encode()
        return CachedDownload(
            trace_id=event.trace_id,
            media_id="m",
            attachment_url=link,
            destination_path=destinations(event)[link].path,
            local_cache_path="cache/x",
            bytes_downloaded=len(content),
            content_sha256=hashlib.sha256(content).hexdigest(),
            status_subtype=event.subtype,
            file_type="PDF",
            assignment_id=str(event.assignment_id),
            original_timestamp=event.at,
            downloaded_at=event.at,
        )

    def put_file(self, record, link):
        path = self.cached(record, link).destination_path
        self.files.held[path] = f"content of {link}".encode()
        return path

    def result(self, record, link, *, status="completed", category=None):
        cached = self.cached(record, link)
        done = status == "completed"
        return DownloadResult(
            trace_id=cached.trace_id,
            media_id="m",
            attachment_url=link,
            blob_path=cached.destination_path,
            status_subtype=cached.status_subtype,
            file_type="PDF",
            assignment_id=cached.assignment_id,
            status=status,
            bytes_downloaded=cached.bytes_downloaded if done else 0,
            error_category=category,
            created_at=cached.original_timestamp,
            original_timestamp=cached.original_timestamp,
            content_sha256=cached.content_sha256 if done else None,
        )

    def store(self, record, *links):
        """All of the way: task, cached file, file, result, row."""
        for link in links or read_event(record).attachments:
            self.task(record, link)
            self.send(self.cached(record, link), self.topics.downloads_cached)
            self.put_file(record, link)
            result = self.result(record, link)
            self.send(result, self.topics.downloads_results)
            self.items(tables.ATTACHMENTS).append(stored_row(result))

    def task(self, record, link):
        event = read_event(record)
        body = {"trace_id": event.trace_id, "attachment_url": link, "blob_path": "p"}
        return self.send(body, self.topics.downloads_pending)

    def fail(self, record, link, *, category=PERMANENT):
        result = self.result(record, link, status="failed_permanent", category=category)
        self.send(result, self.topics.downloads_results)
        self.items(tables.FAILED).append(failed_row(result))

    def refuse(self, record, link):
        self.fail(record, link, category="refused")

    def bury_attachment(self, record, link):
        """Its download failed for good: result, row and dead letter."""
        letter = self.bury("download", self.task(record, link), NO_FILE)
        self.fail(record, link)
        return letter

    def bury(self, stage, record, failure=BROKEN):
        route = self.route(stage)
        envelope = first_envelope(route.group, record).failed(failure, self.now_ms, attempt=1)
        headers = seal(record, envelope)
        return self.send(record.value, str(route.dead_letters), key=record.key, headers=headers)

    def delay(self, stage, record, tier=0):
        route = self.route(stage)
        envelope = first_envelope(route.group, record).failed(
            NO_FILE, self.now_ms, attempt=2, due_ms=self.now_ms + 300_000
        )
        return self.send(record.value, route.tiers[tier].topic, headers=seal(record, envelope))

    def ends(self, topic):
        (described,) = self.admin.describe_topics([topic])
        places = [TopicPartition(topic, number) for number in range(described.partitions)]
        return {at: marks.end for at, marks in self.admin.watermarks(places).items()}

    def commit(self, stage, offsets):
        self.admin.reset_offsets(self.route(stage).group, offsets)

    def finish(self, *, but=()):
        """Every reader has read all there is, and the ledger has the letters; but some."""
        for route in self.pipeline.routes:
            if route.stage not in but:
                for topic in route.reads:
                    self.commit(route.stage, self.ends(topic))
        for table, stage in WRITERS.items():
            if stage not in but:
                self.advance(table)
        if self.state is not None and "ledger" not in but:
            self.enter_letters()
        return self

    def advance(self, table):
        (topic,) = self.route(WRITERS[table]).inputs
        sink = f"xact-{WRITERS[table]}"
        self.tables[table].stored = {
            (sink, self.source(at)): end for at, end in self.ends(topic).items()
        }

    def source(self, at):
        (described,) = self.admin.describe_topics([at.topic])
        return SourcePartition(*at, described.id)

    def enter_letters(self):
        sink = LedgerSink(self.state, ledger_stages(self.pipeline))
        for route in self.pipeline.routes:
            topic = str(route.dead_letters)
            ends = self.ends(topic)
            records = list(self.read(topic, ends))
            self.admin.reset_offsets(self.pipeline.ledger_group, ends)
            sink.commit(records, {self.source(at): end for at, end in ends.items()})

    def read(self, topic, ends):
        consumer = self.broker.consumer(None)
        starts = {at: 0 for at, end in ends.items() if end}
        consumer.assign(starts)
        while any(consumer.position(at) < ends[at] for at in starts):
            yield from consumer.poll(1)
        consumer.close()

    def places(self):
        return AuditPlaces(
            broker=self.broker,
            pipeline=self.pipeline,
            settings=self.settings,
            tables=dict(self.tables),
            files=self.files,
            state=self.state,
            now_ms=self.now_ms,
        )

    def audit(self, *, content=True, progress=lambda done, total: None, **times):
        request = AuditRequest(content=content, **times)
        return XactAudit(self.places()).report(request, progress)


def kinds(report):
    return sorted(problem.kind for problem in report.problems.told)
