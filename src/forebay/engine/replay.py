"""Carries a replay plan out: claim, send, mark; killed at any moment, the next one goes on.

A letter's record is sent first and its marker only when the record is acknowledged, so a marker
that anybody reads means that the record is on its way. What is acknowledged is written down before
anything builds on it; what is not is sent again, under the same number, and the ledger's fold
absorbs it.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from forebay.broker.port import Producer, Report
from forebay.core.buckets import TokenBucket
from forebay.core.errors import ForebayError, Full, RecordTooLarge, Unavailable
from forebay.core.records import Record
from forebay.engine.replay_book import Claimed, Refusal, ReplayBook
from forebay.engine.replay_plans import Plan
from forebay.engine.replay_records import marker, replayed
from forebay.engine.routes import Route
from forebay.state.port import Database

AT_ONCE = 100
OUTSTANDING_MAX = 500
PAUSE_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 0.01


class Progress(NamedTuple):
    """`trouble` says why nothing goes on at the moment."""

    planned: int
    published: int
    sent: int
    passed_over: int
    refused: int
    trouble: str


class _Sent(NamedTuple):
    """What a report is about."""

    what: Literal["record", "marker"]
    claimed: Claimed


@dataclass(slots=True)
class _News:
    """Acknowledged or refused, and not yet written down."""

    published: list[Claimed] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


class ReplayRun:
    """`routes` are those of the stages, by their dead-letter topic. The producer is its own.

    `rate` is records a second, None as fast as it goes. Belongs to one thread.
    """

    def __init__(
        self,
        database: Database,
        producer: Producer,
        plan: Plan,
        routes: Mapping[str, Route],
        rate: float | None = None,
    ) -> None:
        self._book = ReplayBook(database, plan.id)
        self._producer = producer
        self._plan = plan
        self._routes = routes
        self._bucket = None if rate is None else TokenBucket(rate)
        self._seconds_each = 0.0 if rate is None else 1.0 / rate
        self._planned = deque(self._book.planned())
        self._to_send: deque[Claimed] = deque()
        self._to_mark: deque[Claimed] = deque(self._book.published())
        self._in_flight = 0
        self._news = _News()
        self._elapsed = 0.0
        self._stepped_at = inf
        self._not_before = 0.0
        self._trouble: ForebayError | None = None

    @property
    def progress(self) -> Progress:
        counts = self._book.counts()
        return Progress(
            counts.get("planned", 0),
            counts.get("published", 0),
            counts.get("sent", 0),
            counts.get("passed_over", 0),
            counts.get("refused", 0),
            "" if self._trouble is None else str(self._trouble),
        )

    def step(self, now: float) -> float | None:
        """The seconds to wait before the next step, None when it is done. `now` as a wall clock.

        Raises what a person must mend first; the plan goes on from there. After Unavailable it may
        be stepped again.
        """
        self._pass_time(now)
        self._take_in(self._producer.poll(0.0))
        self._write_down()
        if self._elapsed >= self._not_before:
            self._send_markers()
            self._send_records(int(now * 1000))
            self._write_down()
        return self._what_to_wait_for(int(now * 1000))

    def _pass_time(self, now: float) -> None:
        """A clock that is set back holds nothing up."""
        self._elapsed += max(0.0, now - self._stepped_at)
        self._stepped_at = now

    def _take_in(self, reports: Iterable[Report]) -> None:
        trouble: ForebayError | None = None
        for report in reports:
            sent = report.token
            if not isinstance(sent, _Sent):
                continue
            self._in_flight -= 1
            if report.error is None:
                self._acknowledged(sent)
            elif not self._is_refused(sent, report.error):
                trouble = report.error
                self._put_back(sent)
        if trouble is not None:
            self._hold(trouble)

    def _acknowledged(self, sent: _Sent) -> None:
        self._trouble = None
        if sent.what == "record":
            self._news.published.append(sent.claimed)
        elif sent.claimed.is_edited:
            self._to_mark.append(sent.claimed._replace(is_edited=False))
        else:
            self._news.sent.append(sent.claimed.letter.id)

    def _hold(self, trouble: ForebayError) -> None:
        self._trouble = trouble
        self._not_before = self._elapsed + PAUSE_SECONDS
        if not isinstance(trouble, Unavailable):
            self._write_down()
            raise trouble

    def _write_down(self) -> None:
        """News are dropped only when they are durable."""
        news = self._news
        ids = [claimed.letter.id for claimed in news.published]
        self._book.write(ids, news.sent, news.refused)
        self._to_mark.extend(news.published)
        self._news = _News()

    def _send_markers(self) -> None:
        while self._to_mark and self._in_flight < OUTSTANDING_MAX:
            claimed = self._to_mark.popleft()
            if not self._send(_Sent("marker", claimed), marker(claimed, self._plan)):
                return

    def _send_records(self, at_ms: int) -> None:
        room = min(AT_ONCE, OUTSTANDING_MAX - self._in_flight)
        if self._bucket is not None:
            room = min(room, self._bucket.available(self._elapsed))
        self._claim_more(room - len(self._to_send), at_ms)
        while self._to_send and room > 0:
            claimed = self._to_send.popleft()
            record = replayed(claimed, self._plan, self._routes)
            if record is None:
                self._news.refused.append(Refusal(claimed.letter.id, _no_way_back(claimed)))
            elif not self._send(_Sent("record", claimed), record):
                return
            elif self._bucket is not None:
                self._bucket.take(self._elapsed)
            room -= 1

    def _claim_more(self, count: int, at_ms: int) -> None:
        entries = [self._planned[at] for at in range(min(max(count, 0), len(self._planned)))]
        claims = self._book.claim(entries, at_ms)
        for _ in entries:
            self._planned.popleft()
        self._to_send.extend(claims.to_send)
        self._to_mark.extend(claims.published)

    def _send(self, sent: _Sent, record: Record) -> bool:
        """False where there is no room now; what can never be sent counts as done with."""
        try:
            self._producer.send(record, sent)
        except Full:
            self._put_back(sent)
            return False
        except ForebayError as error:
            if self._is_refused(sent, error):
                return True
            self._put_back(sent)
            raise
        self._in_flight += 1
        return True

    def _put_back(self, sent: _Sent) -> None:
        waiting = self._to_send if sent.what == "record" else self._to_mark
        waiting.appendleft(sent.claimed)

    def _is_refused(self, sent: _Sent, error: ForebayError) -> bool:
        if sent.what == "marker" or not isinstance(error, RecordTooLarge):
            return False
        self._news.refused.append(Refusal(sent.claimed.letter.id, str(error)))
        return True

    def _what_to_wait_for(self, at_ms: int) -> float | None:
        if self._in_flight:
            return _LOOK_AGAIN_SECONDS
        if self._elapsed < self._not_before:
            return max(self._not_before - self._elapsed, _LOOK_AGAIN_SECONDS)
        if not (self._planned or self._to_send or self._to_mark):
            self._book.finish(at_ms)
            return None
        if self._to_mark or self._bucket is None or self._bucket.available(self._elapsed):
            return 0.0
        return min(self._seconds_each, PAUSE_SECONDS)


def _no_way_back(claimed: Claimed) -> str:
    return f"no stage takes back what is on {claimed.letter.dlq_topic}"
