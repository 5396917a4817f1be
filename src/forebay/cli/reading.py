"""Reads spans of a topic without a group: nobody's position moves."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

from forebay.broker.port import Broker, Consumer, Watermarks
from forebay.cli.filters import Bounds, Filter, Span, newest, spans
from forebay.cli.output import remark
from forebay.cli.positions import AtTime, Held, Place, offsets_at
from forebay.core.errors import OffsetOutOfRange
from forebay.core.records import Record, TopicPartition

_POLL_SECONDS = 0.25


def records(broker: Broker, held: Held, wanted: Filter, bounds: Bounds) -> Iterator[Record]:
    if bounds.last is None:
        yield from _matching(broker, held, wanted, bounds)
        return
    past = replace(bounds, follow=False, last=bounds.last if wanted.takes_all else None)
    yield from newest(_matching(broker, held, wanted, past), bounds.last)
    if bounds.follow:
        from_here = {place: Watermarks(marks.end, marks.end) for place, marks in held.items()}
        yield from _matching(broker, from_here, wanted, replace(bounds, last=None))


def _matching(broker: Broker, held: Held, wanted: Filter, bounds: Bounds) -> Iterator[Record]:
    begin: Place = "earliest" if wanted.since_ms is None else AtTime(wanted.since_ms)
    chosen = spans(held, offsets_at(broker, held, begin), bounds)
    if not chosen:
        return
    with closing(broker.consumer(None)) as consumer:
        consumer.assign({place: span.start for place, span in chosen.items()})
        for record in _read(consumer, chosen, follow=bounds.follow):
            if wanted.wants(record):
                yield record


def _read(
    consumer: Consumer, chosen: Mapping[TopicPartition, Span], *, follow: bool
) -> Iterator[Record]:
    unfinished = set(chosen)
    while unfinished:
        for record in _poll(consumer):
            if chosen[record.at].holds(record.offset):
                yield record
        finished = {
            place
            for place in unfinished
            if _is_finished(consumer, place, chosen[place], follow=follow)
        }
        consumer.pause(finished)
        unfinished -= finished


def _poll(consumer: Consumer) -> list[Record]:
    try:
        return consumer.poll(_POLL_SECONDS)
    except OffsetOutOfRange as gone:
        remark(f"{gone.partition} was trimmed meanwhile; going on at offset {gone.low}.")
        consumer.seek(gone.partition, gone.low)
        return []


def _is_finished(consumer: Consumer, place: TopicPartition, span: Span, *, follow: bool) -> bool:
    """A log may end with offsets that hold no record, so its end counts as well."""
    if span.stop is not None and consumer.position(place) >= span.stop:
        return True
    return not follow and consumer.at_end(place)
