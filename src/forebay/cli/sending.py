"""Sends records and keeps account of every report."""

from forebay.broker.port import Producer, Report
from forebay.core.errors import Full, InvalidRequest, RecordTooLarge, UnknownPartition
from forebay.core.records import Offset, Record

_POLL_EVERY = 500
_WAIT_SECONDS = 0.1
_FLUSH_SECONDS = 30.0


class Sending:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._sent = 0
        self._first_and_last: dict[int, tuple[Offset, Offset]] = {}
        self.produced = 0
        self.failures: list[str] = []

    def send(self, record: Record, line: int) -> None:
        try:
            self._accept(record, line)
        except (RecordTooLarge, UnknownPartition, InvalidRequest) as problem:
            self.failures.append(f"Line {line}: {problem}")
        self._sent += 1
        if self._sent % _POLL_EVERY == 0:
            self._take(self._producer.poll(0))

    def refuse(self, sentence: str) -> None:
        self.failures.append(sentence)

    def finish(self) -> None:
        self._producer.flush(_FLUSH_SECONDS)
        self._take(self._producer.poll(0))
        self._take(self._producer.close())

    def offsets(self) -> list[tuple[int, tuple[Offset, Offset]]]:
        return sorted(self._first_and_last.items())

    def as_object(self, topic: str) -> dict[str, object]:
        return {
            "produced": self.produced,
            "topic": topic,
            "offsets": dict(self.offsets()),
            "failed": len(self.failures),
            "failures": self.failures[:10],
        }

    def _accept(self, record: Record, line: int) -> None:
        while True:
            try:
                return self._producer.send(record, line)
            except Full:
                self._take(self._producer.poll(_WAIT_SECONDS))

    def _take(self, reports: list[Report]) -> None:
        for report in reports:
            if report.error is not None:
                self.failures.append(f"Line {report.token}: {report.error}")
                continue
            self.produced += 1
            first, last = self._first_and_last.get(report.partition, (report.offset, report.offset))
            self._first_and_last[report.partition] = (
                min(first, report.offset),
                max(last, report.offset),
            )
