"""Reads records back from backup files, and hands them to a topic or to a callable."""

import csv
import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from forebay.broker.port import Producer, Report
from forebay.core.errors import Full, InvalidRequest, RecordTooLarge, UnknownPartition
from forebay.core.records import UNSET, Record, TopicPartition
from forebay.engine.csv_files import as_text
from forebay.mods.kafka_consumer.backup_rows import records_in
from forebay.mods.kafka_consumer.calls import Attempt, Failures, place_of
from forebay.mods.kafka_consumer.messages import text_of

_POLL_EVERY = 500
_WAIT_SECONDS = 0.1
_CLOSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Times are of polling, from and without `until_ms`."""

    topic: str | None = None
    partition: int | None = None
    key: bytes | None = None
    text: bytes | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, record: Record) -> bool:
        return self._in_place(record) and self._in_time(record) and self._in_content(record)

    def _in_place(self, record: Record) -> bool:
        is_topic = self.topic is None or record.topic == self.topic
        return is_topic and (self.partition is None or record.partition == self.partition)

    def _in_time(self, record: Record) -> bool:
        if self.since_ms is not None and record.timestamp_ms < self.since_ms:
            return False
        return self.until_ms is None or record.timestamp_ms < self.until_ms

    def _in_content(self, record: Record) -> bool:
        if self.key is not None and record.key != self.key:
            return False
        return self.text is None or self.text in (record.value or b"")


class Backup:
    """Files in the order they are named, a row at a time; `bytes_read` counts them as they lie."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self.bytes_read = 0
        self.rows = 0
        self.unreadable = 0

    def records(self) -> Iterator[Record]:
        csv.field_size_limit(sys.maxsize)
        for path in self._paths:
            before = self.bytes_read
            with path.open("rb") as raw, as_text(raw) as text:
                for record in self._whole(path, text):
                    self.bytes_read = before + raw.tell()
                    yield record
            self.bytes_read = before + path.stat().st_size

    def _whole(self, path: Path, text: Iterator[str]) -> Iterator[Record]:
        try:
            for record in records_in(csv.reader(text), path):
                self.rows += 1
                if record is None:
                    self.unreadable += 1
                else:
                    yield record
        except (EOFError, zlib.error, gzip.BadGzipFile):  # it was cut, or damaged
            self.rows += 1
            self.unreadable += 1


class Target(Protocol):
    """`places` are where records came from, told by a dry run alone."""

    done: int
    failures: Failures
    places: Mapping[TopicPartition, int]

    def hand_over(self, record: Record) -> None: ...

    def finish(self) -> None:
        """Afterwards all that was handed over is in `done` or in `failures`."""
        ...


class Counting:
    """A dry run."""

    def __init__(self) -> None:
        self.done = 0
        self.failures = Failures()
        self._places: Counter[TopicPartition] = Counter()
        self.places: Mapping[TopicPartition, int] = self._places

    def hand_over(self, record: Record) -> None:
        self.done += 1
        self._places[record.at] += 1

    def finish(self) -> None:
        pass


class ToCallable:
    def __init__(self, attempt: Attempt) -> None:
        self.done = 0
        self.failures = Failures()
        self.places: Mapping[TopicPartition, int] = {}
        self._attempt = attempt

    def hand_over(self, record: Record) -> None:
        error = self._attempt(record)
        if error is None:
            self.done += 1
        else:
            told = f"{type(error).__name__}: {text_of(error)}"
            self.failures.add(f"{place_of(record)}: {told}")

    def finish(self) -> None:
        pass


class ToTopic:
    """Key, value and headers as they were. The partition is chosen anew, by the key."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self.done = 0
        self.failures = Failures()
        self.places: Mapping[TopicPartition, int] = {}
        self._producer = producer
        self._topic = topic
        self._sent = 0

    def hand_over(self, record: Record) -> None:
        copy = record._replace(topic=self._topic, partition=UNSET, offset=UNSET, timestamp_ms=UNSET)
        try:
            self._send(copy, place_of(record))
        except (RecordTooLarge, UnknownPartition, InvalidRequest) as problem:
            self.failures.add(f"{place_of(record)}: {problem}")
        self._sent += 1
        if self._sent % _POLL_EVERY == 0:
            self._take(self._producer.poll(0))

    def finish(self) -> None:
        self._take(self._producer.close(_CLOSE_SECONDS))

    def _send(self, record: Record, token: str) -> None:
        while True:
            try:
                return self._producer.send(record, token)
            except Full:
                self._take(self._producer.poll(_WAIT_SECONDS))

    def _take(self, reports: Sequence[Report]) -> None:
        for report in reports:
            if report.error is None:
                self.done += 1
            else:
                self.failures.add(f"{report.token}: {report.error}")
