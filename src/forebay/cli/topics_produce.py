"""forebay topics produce: records from stdin, a line each."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, BinaryIO

import orjson
from typer import Argument, Option, Typer

from forebay.cli.command import DONE, FOUND_A_PROBLEM, INTERRUPTED, Command
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_object, remark, say
from forebay.cli.payload import from_json, headers_from_json
from forebay.cli.sending import Sending
from forebay.core.records import UNSET, Record

READ_BY_US = frozenset({"topic", "offset", "time"})  # what `topics read --json` adds
KNOWN = frozenset({"key", "value", "headers", "partition", "timestamp"}) | READ_BY_US


class Format(StrEnum):
    LINES = "lines"
    JSON = "json"


@dataclass(frozen=True)
class Produce(Command):
    topic: Annotated[str, Argument(metavar="TOPIC", help="The name of the topic.")]
    format_: Annotated[
        Format, Option("--format", help="A line is a value, or an object of key and value.")
    ] = Format.LINES

    def run(self) -> int:
        if sys.stdin.isatty():
            remark("Type one record a line; Ctrl-D ends.")
        with self.session().broker() as broker:
            broker.admin().describe_topics([self.topic])
            sending = Sending(broker.producer())
            code = self._send_all(sending)
            sending.finish()
        self._tell(sending)
        return code or (FOUND_A_PROBLEM if sending.failures else DONE)

    def _send_all(self, sending: Sending) -> int:
        """What was sent before a bad line stays sent, and is told."""
        try:
            for number, record in read_records(sys.stdin.buffer, self.topic, self.format_):
                sending.send(record, number)
        except WrongUse as problem:
            sending.refuse(str(problem))
        except KeyboardInterrupt:
            return INTERRUPTED
        return DONE

    def _tell(self, sending: Sending) -> None:
        for sentence in sending.failures[:10]:
            remark(f"forebay: {sentence}")
        if self.as_json:
            print_object(sending.as_object(self.topic))
            return
        places = ", ".join(
            f"[{partition}] {first} to {last}" for partition, (first, last) in sending.offsets()
        )
        failed = f", {len(sending.failures):,} failed" if sending.failures else ""
        say(f"{sending.produced:,} records to {self.topic}{failed}. {places}".rstrip())


def read_records(source: BinaryIO, topic: str, format_: Format) -> Iterator[tuple[int, Record]]:
    for number, line in enumerate(source, start=1):
        content = line.removesuffix(b"\n")
        if format_ is Format.LINES:
            yield number, Record(content, topic=topic)
        elif content.strip() and not _ends_a_reading(content):
            yield number, parse_record(content, topic, number)


def parse_record(content: bytes, topic: str, number: int) -> Record:
    try:
        return _record(_parsed(content), topic)
    except WrongUse as problem:
        raise WrongUse(f"Line {number} was not sent, nor what follows it: {problem}.") from problem


def _parsed(content: bytes) -> dict[str, object]:
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError as problem:
        raise WrongUse(f"it is no JSON ({problem})") from problem
    if not isinstance(parsed, dict):
        raise WrongUse("it is no object with key and value")
    if unknown := sorted(parsed.keys() - KNOWN):
        raise WrongUse(f"nobody knows {unknown[0]!r}; write key, value, headers, partition")
    if "value" not in parsed:
        raise WrongUse('it has no "value"; write null for none')
    return parsed


def _record(parsed: dict[str, object], topic: str) -> Record:
    return Record(
        from_json(parsed["value"], "value"),
        key=from_json(parsed.get("key"), "key"),
        headers=headers_from_json(parsed.get("headers")),
        topic=topic,
        partition=_number(parsed.get("partition"), "partition"),
        timestamp_ms=_timestamp(parsed.get("timestamp")),
    )


def _number(value: object, what: str) -> int:
    if value is None:
        return UNSET
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise WrongUse(f"the {what} must be a number from 0")
    return value


def _timestamp(value: object) -> int:
    if not isinstance(value, str):
        return _number(value, "timestamp")
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1_000)
    except ValueError as problem:
        raise WrongUse("the timestamp must be milliseconds or ISO 8601") from problem


def _ends_a_reading(content: bytes) -> bool:
    """The closing object of `topics read --json`, so that one can be piped into the other."""
    return content.startswith(b'{"items":') and b'"total":' in content


def add_produce_command(app: Typer) -> None:
    app.command(
        "produce",
        help="Send records from stdin, a line each.\n\n"
        "forebay topics produce orders --format json < orders.ndjson\n\n"
        'With --format json a line is {"key","value","headers","partition","timestamp"}, each '
        'text or {"base64": "…"}.',
    )(Produce)
