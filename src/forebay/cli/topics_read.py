"""forebay topics read: looks at records without joining a group or moving anybody's position."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from typer import Argument, Option, Typer

from forebay.broker.port import Broker, Watermarks
from forebay.cli.command import DONE, INTERRUPTED, Command
from forebay.cli.errors import WrongUse
from forebay.cli.filters import Bounds, Filter, parse_header
from forebay.cli.output import json_line, print_object, remark, say
from forebay.cli.payload import headers_to_json, one_line, printable, to_json
from forebay.cli.positions import chosen_partitions, look_at, now_ms
from forebay.cli.reading import records
from forebay.cli.times import iso, time_ms
from forebay.core.errors import OffsetOutOfRange
from forebay.core.records import Record, TopicPartition

ITEMS_KEPT_MAX = 10_000
TERMINAL_LENGTH_MAX = 500


@dataclass(frozen=True)
class ReadTopic(Command):
    topic: Annotated[str, Argument(metavar="TOPIC", help="The name of the topic.")]
    key: Annotated[str | None, Option("--key", metavar="TEXT", help="Only this key.")] = None
    headers: Annotated[
        list[str] | None,
        Option("--header", metavar="NAME=VALUE", help="Only with this header; may be repeated."),
    ] = None
    since: Annotated[
        str | None, Option("--since", metavar="TIME", help="From then: 10m, 2026-11-18T09:00Z.")
    ] = None
    until: Annotated[str | None, Option("--until", metavar="TIME", help="Before then.")] = None
    from_offset: Annotated[
        int | None, Option("--from-offset", metavar="N", min=0, help="From this offset on.")
    ] = None
    to_offset: Annotated[
        int | None, Option("--to-offset", metavar="N", min=0, help="Before this offset.")
    ] = None
    partition: Annotated[
        int | None, Option("--partition", metavar="N", min=0, help="Only this one.")
    ] = None
    limit: Annotated[
        int | None, Option("--limit", metavar="N", min=1, help="Stop after so many.")
    ] = None
    last: Annotated[
        int | None, Option("--last", metavar="N", min=0, help="Only the newest so many.")
    ] = None
    follow: Annotated[
        bool, Option("--follow", "-f", help="Go on with what arrives, until Ctrl-C.")
    ] = False

    def run(self) -> int:
        if self.limit is not None and self.last is not None:
            raise WrongUse("--limit takes the oldest, --last the newest; write one of them.")
        wanted = self._filter()
        bounds = Bounds(self.from_offset, self.to_offset, self.last, self.follow)
        shown = Shown(as_json=self.as_json, limit=self.limit)
        code = DONE
        with self.session().broker() as broker:
            held = self._held(broker)
            try:
                shown.show_all(records(broker, held, wanted, bounds))
            except KeyboardInterrupt:
                code = INTERRUPTED
        shown.close(self.topic)
        return code

    def _filter(self) -> Filter:
        now = now_ms()
        return Filter(
            key=self.key,
            headers=tuple(parse_header(text) for text in self.headers or ()),
            since_ms=time_ms(self.since, now) if self.since else None,
            until_ms=time_ms(self.until, now) if self.until else None,
        )

    def _held(self, broker: Broker) -> dict[TopicPartition, Watermarks]:
        held = chosen_partitions(look_at(broker.admin(), self.topic)[1], self.partition)
        if self.partition is not None and self.from_offset is not None:
            [(place, marks)] = held.items()
            if not marks.low <= self.from_offset <= marks.end:
                raise OffsetOutOfRange(place, self.from_offset, marks.low, marks.end)
        return held


class Shown:
    """What was shown so far, a line a record."""

    def __init__(self, *, as_json: bool, limit: int | None) -> None:
        self._as_json = as_json
        self._limit = limit
        self._items: list[dict[str, object]] = []
        self._total = 0
        self._length_max = TERMINAL_LENGTH_MAX if sys.stdout.isatty() else None

    def show_all(self, records: Iterator[Record]) -> None:
        for record in islice(records, self._limit):
            self._total += 1
            if self._as_json:
                self._show_object(record)
            else:
                say(as_line(record, self._length_max))

    def close(self, topic: str) -> None:
        if self._as_json:
            left_out = self._total - len(self._items)
            facts = {"topic": topic, "left_out": left_out}
            print_object({"items": self._items, "total": self._total} | facts)
        else:
            remark(f"{self._total:,} records of {topic}")

    def _show_object(self, record: Record) -> None:
        item = as_object(record)
        say(json_line(item))
        if len(self._items) < ITEMS_KEPT_MAX:
            self._items.append(item)


def as_object(record: Record) -> dict[str, object]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "time": iso(record.timestamp_ms),
        "key": to_json(record.key),
        "value": to_json(record.value),
        "headers": headers_to_json(record.headers),
    }


def as_line(record: Record, length_max: int | None) -> str:
    headers = " ".join(
        f"{printable(name)}={one_line(value, length_max)}" for name, value in record.headers
    )
    place = f"{record.partition}@{record.offset}"
    key = one_line(record.key, length_max)
    line = f"{place}  {iso(record.timestamp_ms)}  {key}  {one_line(record.value, length_max)}"
    return f"{line}  [{headers}]" if headers else line


def add_read_command(app: Typer) -> None:
    app.command(
        "read",
        help="Show records; joins no group, moves nobody's position.\n\n"
        "forebay topics read orders --since 10m --key A-1001 -f",
    )(ReadTopic)
