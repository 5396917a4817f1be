"""Reads along what the pipeline writes: what came of the attachments, when, and what waits."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from forebay.attachments.results import COMPLETED, REFUSED, status_of
from forebay.bootstrap.tables import open_table
from forebay.broker.port import Broker, Consumer
from forebay.cli.demo.feeder import Arrivals
from forebay.cli.demo.figures import Latencies
from forebay.cli.demo.latest import Latest, death_sentence, failure_sentence, name_of
from forebay.core.envelope import read_envelope
from forebay.core.errors import ForebayError, OffsetOutOfRange
from forebay.core.markers import read_marker
from forebay.core.records import Offset, Record, TopicPartition
from forebay.domains.xact.messages import media_id
from forebay.engine.idle import is_drained
from forebay.engine.pipeline import Pipeline
from forebay.engine.routes import Route
from forebay.engine.run import readers_of

POLL_SECONDS = 0.1
LOOK_SECONDS = 0.5
STUMBLE_SECONDS = 0.2
RECORDER = "result-processor"


@dataclass(frozen=True, slots=True)
class Scene:
    """`table`: where the rows of stored attachments go; `results`: the topic they come from."""

    broker: Broker
    pipeline: Pipeline
    results: str
    table: Path
    attempts_max: int


@dataclass(slots=True)
class Tally:
    """`waiting`: records that stages have still to finish."""

    stored: int = 0
    refused: int = 0
    dead_letters: int = 0
    waiting: int = 0
    available: Latencies = field(default_factory=Latencies)
    recorded: Latencies = field(default_factory=Latencies)


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Stored, and on its way to the table."""

    offset: Offset
    trace_id: str
    url: str
    stored_ms: float


class Observer(threading.Thread):
    """Everything that waits for the broker is done here, so that the screen never does."""

    def __init__(
        self, scene: Scene, arrivals: Arrivals, latest: Latest, is_fed: Callable[[], bool]
    ) -> None:
        super().__init__(name="observer", daemon=True)
        self._scene = scene
        self._arrivals = arrivals
        self._latest = latest
        self._is_fed = is_fed
        self._tiers = {
            tier.topic: tier.delay_seconds for route in _routes(scene) for tier in route.tiers
        }
        self._letters = {route.dead_letter_topic for route in _routes(scene)} - {None}
        self._unrecorded: dict[int, deque[Unrecorded]] = {}
        self._seen: set[int] = set()
        self._looked_at = 0.0
        self._commits = 0
        self._is_told_to_end = threading.Event()
        self.tally = Tally()
        self.answered_at = 0.0
        self.is_drained = False
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            consumer = self._scene.broker.consumer(None)
            try:
                self._observe(consumer)
            finally:
                consumer.close()
        except Exception as problem:  # noqa: BLE001  the edge of a thread: who watches it raises it
            self.failure = problem

    def end(self) -> None:
        self._is_told_to_end.set()
        if self.ident is not None:
            self.join()

    def _observe(self, consumer: Consumer) -> None:
        consumer.assign(dict.fromkeys(self._places(), 0))
        while not self._is_told_to_end.is_set():
            try:
                self._read(consumer)
                self._look_at_table()
                self._look_at_broker(time.monotonic())
            except OffsetOutOfRange as gone:
                consumer.seek(gone.partition, gone.low)
            except ForebayError:  # a broker that is bounced, a table that does not exist yet
                self._is_told_to_end.wait(STUMBLE_SECONDS)

    def _places(self) -> Iterator[TopicPartition]:
        topics = [self._scene.results, *self._tiers, *(topic for topic in self._letters if topic)]
        for topic in self._scene.broker.admin().describe_topics(topics):
            yield from (TopicPartition(topic.name, number) for number in range(topic.partitions))

    def _read(self, consumer: Consumer) -> None:
        for record in consumer.poll(POLL_SECONDS):
            if record.topic == self._scene.results:
                self._take_result(record)
            elif record.topic in self._tiers:
                self._take_retry(record)
            else:
                self._take_letter(record)

    def _take_result(self, record: Record) -> None:
        result = _object(record)
        key = hash(("result", media_id(result["trace_id"], result["attachment_url"])))
        if key in self._seen:
            return
        self._seen.add(key)
        if status_of(result["status"]) == COMPLETED:
            self.tally.stored += 1
            stored_ms = _milliseconds(result["created_at"])
            waiting = self._unrecorded.setdefault(record.partition, deque())
            waiting.append(
                Unrecorded(record.offset, result["trace_id"], result["attachment_url"], stored_ms)
            )
        elif result["error_category"] == REFUSED:
            self.tally.refused += 1

    def _take_retry(self, record: Record) -> None:
        envelope = read_envelope(record)
        if envelope is None:
            return
        delay = self._tiers[record.topic]
        sentence = failure_sentence(_who(record), envelope, delay, self._scene.attempts_max)
        self._latest.failed(sentence, time.monotonic())

    def _take_letter(self, record: Record) -> None:
        envelope = read_envelope(record)
        if envelope is None or read_marker(record) is not None:
            return
        if (key := hash(("letter", envelope.id))) not in self._seen:
            self._seen.add(key)
            self.tally.dead_letters += 1
            self._latest.failed(death_sentence(_who(record), envelope), time.monotonic())

    def _look_at_table(self) -> None:
        """Each commit stands in the table's log, with the position it went up to."""
        commits = sum(1 for _ in self._scene.table.glob("_delta_log/*.json"))
        if commits == self._commits:
            return
        now_ms = time.time() * 1000
        for stored in open_table(str(self._scene.table)).describe().positions:
            if stored.sink.endswith(RECORDER):
                self._recorded(stored.source.partition, stored.next_offset, now_ms)
        self._commits = commits

    def _recorded(self, partition: int, before: Offset, now_ms: float) -> None:
        waiting = self._unrecorded.get(partition, deque())
        while waiting and waiting[0].offset < before:
            done = waiting.popleft()
            accepted_ms = self._arrivals.take(done.trace_id, done.url)
            if accepted_ms is not None:
                self.tally.available.add(done.stored_ms - accepted_ms)
                self.tally.recorded.add(now_ms - accepted_ms)

    def _look_at_broker(self, now: float) -> None:
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        is_fed = self._is_fed()
        admin = self._scene.broker.admin()
        pipeline = self._scene.pipeline
        waiting = 0
        for stage in pipeline.record_stages:
            waiting += admin.describe_group(pipeline.route(stage).group).lag
        self.tally.waiting = waiting
        self.is_drained = is_fed and not waiting and is_drained(admin, _all_readers(pipeline))
        self.answered_at = time.monotonic()


def _all_readers(pipeline: Pipeline) -> list[tuple[str, str]]:
    """Delay tiers too: what waits there is not done."""
    readers = [(group, topic) for _, group, topic in readers_of(pipeline)]
    tiers = [tier.topic for route in pipeline.routes for tier in route.tiers]
    return [*readers, *((pipeline.scheduler_group, topic) for topic in tiers)]


def _routes(scene: Scene) -> tuple[Route, ...]:
    return scene.pipeline.routes


def _who(record: Record) -> str:
    with suppress(ValueError, TypeError, AttributeError):
        told = _object(record)
        kind = told.get("event_subtype") or str(told.get("type", "")).rpartition(".")[2]
        return name_of(told.get("trace_id") or told.get("traceId"), kind)
    return name_of((record.key or b"").decode(errors="replace"), "")


def _object(record: Record) -> dict[str, Any]:
    told: dict[str, Any] = orjson.loads(record.value or b"")
    return told


def _milliseconds(written: str) -> float:
    return datetime.fromisoformat(written).timestamp() * 1000
