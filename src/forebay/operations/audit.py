"""Accounts for every record of a pipeline from the data itself: offsets, tiers, ledger."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from forebay.broker.port import Broker
from forebay.core.envelope import open_envelope
from forebay.core.markers import EntryState, read_marker
from forebay.core.records import Offset, Record, TopicPartition
from forebay.engine.idle import committed_of
from forebay.engine.ledger import Ledger
from forebay.engine.letters import LetterFilter
from forebay.engine.pipeline import Pipeline
from forebay.engine.routes import Route, Tier
from forebay.operations.spans import records_in, rest_of, watermarks_of
from forebay.state.expired_ranges import ExpiredRanges
from forebay.state.port import Database

Kind: TypeAlias = Literal["unaccounted_offset", "expired_range"]

OVERDUE_SECONDS = 60.0
_STILL_DEAD: tuple[EntryState, ...] = ("open", "discarded")


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    detail: str
    topic: str
    partition: int
    from_offset: Offset
    to_offset: Offset


@dataclass(frozen=True, slots=True)
class Account:
    """Of one stage. `in_flight` was not resolved yet, read or not; `waiting` lies in tiers.

    `resolved` counts offsets of the inputs that the group is past, less what waits or is dead.
    """

    stage: str
    resolved: int = 0
    waiting: int = 0
    dead_lettered: int = 0
    in_flight: int = 0
    expired: int = 0
    next_due_ms: int | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Sums:
    """While an account is made. `passed_by`: of what was passed, what retention had taken."""

    passed: int = 0
    passed_by: int = 0
    in_flight: int = 0
    expired: int = 0
    findings: list[Finding] = field(default_factory=list)


class Audit:
    """Reads only. `state` None: no ledger is here, so dead letters are counted on their topic."""

    def __init__(self, broker: Broker, state: Database | None, now_ms: int) -> None:
        self._broker = broker
        self._admin = broker.admin()
        self._state = state
        self._now_ms = now_ms

    def accounts(self, pipeline: Pipeline) -> list[Account]:
        return [self._account(pipeline, route) for route in pipeline.routes]

    def gaps(self, pipeline: Pipeline) -> list[Finding]:
        """What was deleted before its group read it, and positions outside their log."""
        sums = _Sums()
        for route in pipeline.routes:
            committed = committed_of(self._admin, route.group)
            for topic in route.reads:
                self._add_topic(sums, route, topic, committed)
            self._add_recorded_gaps(sums, route.group, route.reads)
        tiers = [tier.topic for route in pipeline.routes for tier in route.tiers]
        letters = [route.dead_letter_topic for route in pipeline.routes if route.dead_letter_topic]
        self._add_gaps_of(sums, pipeline.scheduler_group, tiers)
        if self._state is not None:
            self._add_gaps_of(sums, pipeline.ledger_group, letters)
        return list(dict.fromkeys(sums.findings))

    def _add_gaps_of(self, sums: _Sums, group: str, topics: Collection[str]) -> None:
        committed = committed_of(self._admin, group)
        self._add_recorded_gaps(sums, group, topics)
        for topic in topics:
            self._add_unread_gaps(sums, group, topic, committed)

    def _account(self, pipeline: Pipeline, route: Route) -> Account:
        sums = _Sums()
        committed = committed_of(self._admin, route.group)
        for topic in route.reads:
            self._add_topic(sums, route, topic, committed)
        self._add_recorded_gaps(sums, route.group, route.inputs)
        waiting, due_ms, overdue = self._waiting(pipeline, route, sums)
        dead = self._dead_lettered(pipeline, route, sums)
        back = sum(self._behind(topic, committed) for topic in _only_again(route))
        resolved = sums.passed - sums.passed_by - waiting - dead - back
        return Account(
            stage=route.stage,
            resolved=max(0, resolved),
            waiting=waiting,
            dead_lettered=dead,
            in_flight=sums.in_flight,
            expired=sums.expired,
            next_due_ms=due_ms,
            findings=(*sums.findings, *overdue),
        )

    def _add_topic(
        self,
        sums: _Sums,
        route: Route,
        topic: str,
        committed: Mapping[TopicPartition, Offset],
    ) -> None:
        for at, (low, end) in watermarks_of(self._admin, topic).items():
            offset = committed.get(at, low)
            if offset > end:
                sums.findings.append(_beyond_the_end(route, at, offset, end))
            if offset < low:
                _add_gap(sums, route.group, at, offset, low)
            if topic in route.inputs:
                sums.passed += offset
            sums.in_flight += max(0, end - max(offset, low))

    def _behind(self, topic: str, committed: Mapping[TopicPartition, Offset]) -> int:
        marks = watermarks_of(self._admin, topic)
        return sum(max(0, end - committed.get(at, low)) for at, (low, end) in marks.items())

    def _add_recorded_gaps(self, sums: _Sums, group: str, topics: Collection[str]) -> None:
        """What a group has passed by: it counts as passed, and was never read."""
        if self._state is None:
            return
        for gap in ExpiredRanges(self._state).rows(group):
            at, gone = TopicPartition(gap.topic, gap.partition), gap.to_offset - gap.from_offset
            if at.topic not in topics:
                continue
            if gone < 0:
                sums.findings.append(_another_log(group, at, gap.from_offset, gap.to_offset))
                continue
            sums.passed_by += gone
            _add_gap(sums, group, at, gap.from_offset, gap.to_offset)

    def _add_unread_gaps(
        self, sums: _Sums, group: str, topic: str, committed: Mapping[TopicPartition, Offset]
    ) -> None:
        """What retention took from a topic of ours before its reader came to it."""
        for at, (low, _) in watermarks_of(self._admin, topic).items():
            start = committed.get(at, 0)
            if start < low:
                sums.passed_by += low - start
                _add_gap(sums, group, at, start, low)

    def _waiting(
        self, pipeline: Pipeline, route: Route, sums: _Sums
    ) -> tuple[int, int | None, list[Finding]]:
        """What the scheduler has not brought back yet; overdue is what nobody seems to bring."""
        group = pipeline.scheduler_group
        committed = committed_of(self._admin, group)
        self._add_recorded_gaps(sums, group, [tier.topic for tier in route.tiers])
        count, next_due_ms = 0, None
        overdue: list[Finding] = []
        for tier in route.tiers:
            self._add_unread_gaps(sums, group, tier.topic, committed)
            for record in self._unread(tier.topic, committed):
                due_ms = _due_ms(record, route, tier)
                count += 1
                next_due_ms = min(due_ms, next_due_ms or due_ms)
                if self._now_ms - due_ms > OVERDUE_SECONDS * 1000:
                    overdue.append(_overdue(route, record, due_ms, self._now_ms))
        return count, next_due_ms, overdue

    def _dead_lettered(self, pipeline: Pipeline, route: Route, sums: _Sums) -> int:
        topic = route.dead_letter_topic
        if topic is None:
            return 0
        if self._state is None:
            gone = sum(low for low, _ in watermarks_of(self._admin, topic).values())
            return gone + sum(
                1 for record in self._unread(topic, {}) if read_marker(record) is None
            )
        wanted = LetterFilter(pipeline=pipeline.name, stage=route.stage)
        ledger = Ledger(self._state)
        entered = sum(ledger.count(replace(wanted, state=state)) for state in _STILL_DEAD)
        group = pipeline.ledger_group
        committed = committed_of(self._admin, group)
        self._add_recorded_gaps(sums, group, [topic])
        self._add_unread_gaps(sums, group, topic, committed)
        unread = self._unread(topic, committed)
        return entered + sum(1 for record in unread if read_marker(record) is None)

    def _unread(self, topic: str, committed: Mapping[TopicPartition, Offset]) -> Iterator[Record]:
        rest = rest_of(watermarks_of(self._admin, topic), committed)
        for records in records_in(self._broker, rest):
            yield from records


def _only_again(route: Route) -> list[str]:
    return [topic for topic in route.re_entries.values() if topic not in route.inputs]


def _due_ms(record: Record, route: Route, tier: Tier) -> int:
    delay_ms = round(tier.delay_seconds * 1000)
    envelope = open_envelope(record, route.group, len(route.tiers) + 1, delay_ms)
    if envelope is None or not envelope.due_ms:
        return record.timestamp_ms + delay_ms
    return envelope.due_ms


def _beyond_the_end(route: Route, at: TopicPartition, offset: Offset, end: Offset) -> Finding:
    detail = (
        f"Group {route.group} has committed offset {offset} of {at}, but the log ends at {end}: "
        f"the topic is another one, or somebody reset the group. Look at both."
    )
    return Finding("unaccounted_offset", detail, *at, end, offset)


def _add_gap(sums: _Sums, group: str, at: TopicPartition, start: Offset, stop: Offset) -> None:
    sums.expired += stop - start
    detail = (
        f"Retention deleted {stop - start} records of {at} before group {group} read them. "
        f"They are gone; lengthen the topic's retention."
    )
    sums.findings.append(Finding("expired_range", detail, *at, start, stop))


def _another_log(group: str, at: TopicPartition, start: Offset, stop: Offset) -> Finding:
    detail = (
        f"Group {group} stood at offset {start} of {at}, which the log did not hold: the topic is "
        f"another one. It went on at {stop}; look at what was in the old topic."
    )
    return Finding("expired_range", detail, *at, start, stop)


def _overdue(route: Route, record: Record, due_ms: int, now_ms: int) -> Finding:
    seconds = (now_ms - due_ms) // 1000
    detail = (
        f"A retry of stage {route.stage} has been due for {seconds} s and was not brought back. "
        f"See that the pipeline's retry-scheduler runs."
    )
    return Finding("unaccounted_offset", detail, *record.at, record.offset, record.offset + 1)
