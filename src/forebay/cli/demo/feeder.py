"""Sends the events of a script at their times, each until the broker has acknowledged it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from forebay.broker.port import Broker, Producer, Report
from forebay.core.errors import Full
from forebay.core.records import Record
from forebay.simulator.endings import FileHostAddress, SimulatedEvent
from forebay.simulator.scenario import Outage
from forebay.simulator.scenarios import script
from forebay.simulator.truth import Expected

POLL_SECONDS = 0.01
PATIENCE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Feed:
    """`rate`: events a second; None takes the script's own times, 0 is as fast as it goes."""

    script: str
    seed: int
    count: int
    host: FileHostAddress
    topic: str
    rate: float | None
    outages: tuple[Outage, ...]

    def events(self) -> Iterator[SimulatedEvent]:
        """Links are signed now."""
        signed_at = datetime.now(UTC).replace(microsecond=0)
        return script(self.script, self.seed, self.count, self.host, signed_at=signed_at)


class Arrivals:
    """When the event of each attachment was accepted. Written by the feeder, emptied by others."""

    def __init__(self) -> None:
        self._accepted_ms: dict[tuple[str, str], int] = {}

    def accepted(self, event: SimulatedEvent, at_ms: int) -> None:
        for attachment in event.truth.attachments:
            self._accepted_ms[event.truth.trace_id, attachment.url] = at_ms

    def take(self, trace_id: str, url: str) -> int | None:
        """None for one that was taken before."""
        return self._accepted_ms.pop((trace_id, url), None)


class Feeder(threading.Thread):
    def __init__(self, feed: Feed, broker: Broker, fail_for: Callable[[float], None]) -> None:
        super().__init__(name="feeder", daemon=True)
        self._feed = feed
        self._broker = broker
        self._fail_for = fail_for
        self._outages = deque(feed.outages)
        self._again: deque[SimulatedEvent] = deque()
        self._is_told_to_end = threading.Event()
        self.arrivals = Arrivals()
        self.expected = Expected()
        self.acknowledged = 0
        self.sent_again = 0
        self.started_at: float | None = None
        self.failure: Exception | None = None
        self.is_done = False

    def run(self) -> None:
        try:
            producer = self._broker.producer()
            try:
                self._send_all(producer)
            finally:
                producer.close(PATIENCE_SECONDS)
        except Exception as problem:  # noqa: BLE001  the edge of a thread: who watches it raises it
            self.failure = problem

    def end(self) -> None:
        self._is_told_to_end.set()
        if self.ident is not None:
            self.join()

    def _send_all(self, producer: Producer) -> None:
        self.started_at = time.monotonic()
        for number, event in enumerate(self._feed.events()):
            self._wait_for(self._due(event, number), producer)
            self._begin_outages(number)
            if self._is_told_to_end.is_set():
                return
            self.expected.add(event)
            self._send(producer, event)
        while producer.outstanding or self._again:
            if self._is_told_to_end.is_set():
                return
            self._take_reports(producer, PATIENCE_SECONDS)
        self.is_done = True

    def _due(self, event: SimulatedEvent, number: int) -> float:
        """Seconds after the start."""
        match self._feed.rate:
            case None:
                return event.at_seconds
            case 0:
                return 0.0
            case rate:
                return number / rate

    def _wait_for(self, due: float, producer: Producer) -> None:
        started_at = self.started_at or 0.0
        while not self._is_told_to_end.is_set():
            left = started_at + due - time.monotonic()
            self._take_reports(producer, min(max(left, 0.0), POLL_SECONDS))
            if left <= 0:
                return
            if not producer.outstanding:
                self._is_told_to_end.wait(min(left, POLL_SECONDS))

    def _begin_outages(self, number: int) -> None:
        while self._outages and number >= self._outages[0].after_share * self._feed.count:
            self._fail_for(self._outages.popleft().seconds)

    def _send(self, producer: Producer, event: SimulatedEvent) -> None:
        record = Record(event.value, event.key, list(event.headers), self._feed.topic)
        while not self._is_told_to_end.is_set():
            try:
                producer.send(record, token=event)
            except Full:
                self._take_reports(producer, PATIENCE_SECONDS)
            else:
                return

    def _take_reports(self, producer: Producer, timeout_seconds: float) -> None:
        for report in producer.poll(timeout_seconds):
            self._take(report)
        while self._again and not self._is_told_to_end.is_set():
            self.sent_again += 1
            self._send(producer, self._again.popleft())

    def _take(self, report: Report) -> None:
        event = cast("SimulatedEvent", report.token)
        if report.error is not None:
            self._again.append(event)
            return
        self.acknowledged += 1
        self.arrivals.accepted(event, report.timestamp_ms)
