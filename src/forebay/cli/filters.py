"""Which records a person wants to see. Pure: the reader does the reading."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import TypeAlias

from forebay.broker.port import Watermarks
from forebay.cli.errors import WrongUse
from forebay.core.records import Offset, Record, TopicPartition

Age: TypeAlias = tuple[int, int, Offset]


@dataclass(frozen=True, slots=True)
class Filter:
    """Times are from and without `until_ms`; a header without a value asks for its name alone."""

    key: str | None = None
    headers: tuple[tuple[str, str | None], ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def wants(self, record: Record) -> bool:
        return self._in_time(record) and self._has_key(record) and self._has_headers(record)

    @property
    def takes_all(self) -> bool:
        return self == Filter()

    def _in_time(self, record: Record) -> bool:
        if self.since_ms is not None and record.timestamp_ms < self.since_ms:
            return False
        return self.until_ms is None or record.timestamp_ms < self.until_ms

    def _has_key(self, record: Record) -> bool:
        return self.key is None or record.key == self.key.encode()

    def _has_headers(self, record: Record) -> bool:
        if not self.headers:
            return True
        return all(_has_header(record, name, value) for name, value in self.headers)


def parse_header(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    if not name:
        raise WrongUse(f"--header {text!r} has no name; write name=value, or name alone.")
    return name, value if equals else None


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets from `start` up to and without `stop`; None is as far as there is, or will be."""

    start: Offset
    stop: Offset | None

    def holds(self, offset: Offset) -> bool:
        return offset >= self.start and (self.stop is None or offset < self.stop)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What was asked for, the same for every partition; `last` counts back from the end."""

    from_offset: Offset | None = None
    to_offset: Offset | None = None
    last: int | None = None
    follow: bool = False


def spans(
    held: Mapping[TopicPartition, Watermarks],
    starts: Mapping[TopicPartition, Offset],
    bounds: Bounds,
) -> dict[TopicPartition, Span]:
    """`starts` are where the time asked for begins; empty partitions matter only when followed."""
    chosen = {place: _span(marks, starts[place], bounds) for place, marks in held.items()}
    return {place: span for place, span in chosen.items() if bounds.follow or _is_open(span)}


def _span(marks: Watermarks, start: Offset, bounds: Bounds) -> Span:
    start = max(start, marks.low, bounds.from_offset or 0)
    if bounds.last is not None:
        end = marks.end if bounds.to_offset is None else min(marks.end, bounds.to_offset)
        start = max(start, end - bounds.last)
    if bounds.follow:
        return Span(min(start, marks.end), bounds.to_offset)
    stop = marks.end if bounds.to_offset is None else min(bounds.to_offset, marks.end)
    return Span(start, stop)


def _is_open(span: Span) -> bool:
    return span.stop is None or span.start < span.stop


def _has_header(record: Record, name: str, value: str | None) -> bool:
    wanted = None if value is None else value.encode()
    return any(
        header == name and (wanted is None or held == wanted) for header, held in record.headers
    )


def newest(records: Iterable[Record], count: int) -> list[Record]:
    """The last ones of all partitions, oldest first; holds no more than those in memory."""
    return [record for _, record in sorted(nlargest(count, _by_age(records)))]


def _by_age(records: Iterable[Record]) -> Iterator[tuple[Age, Record]]:
    """A timestamp set by the sender must not put a record before its forerunners in the log."""
    reached: dict[TopicPartition, int] = {}
    for record in records:
        latest = max(reached.get(record.at, 0), record.timestamp_ms)
        reached[record.at] = latest
        yield (latest, record.partition, record.offset), record
