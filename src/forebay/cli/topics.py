"""forebay topics: create, list, describe, extend, delete, trim."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from typer import Argument, Option, Typer

from forebay.broker.port import Broker, TopicDescription, Watermarks
from forebay.cli.asking import Deed, agreed, tell
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command, DestructiveCommand
from forebay.cli.output import Table, print_table, remark
from forebay.cli.positions import (
    chosen_partitions,
    look_at,
    offsets_at,
    parse_place,
    partitions_of,
)
from forebay.cli.times import duration_ms, short_duration
from forebay.core.records import TopicPartition
from forebay.core.topics import TopicSpec

TopicName = Annotated[str, Argument(metavar="TOPIC", help="The name of the topic.")]


@dataclass(frozen=True)
class CreateTopic(Command):
    topic: TopicName
    partitions: Annotated[
        int, Option("--partitions", "-p", metavar="N", min=1, help="How many, in all.")
    ] = 1
    retention: Annotated[
        str | None,
        Option("--retention", metavar="TIME", help="How long records are kept, e.g. 7d or 12h."),
    ] = None
    retention_bytes: Annotated[
        int | None,
        Option("--retention-bytes", metavar="N", min=1, help="Bytes kept in each partition."),
    ] = None
    replication: Annotated[
        int | None, Option("--replication", metavar="N", min=1, help="Copies on a Kafka cluster.")
    ] = None
    if_missing: Annotated[
        bool, Option("--if-missing", help="Leave a topic that exists as it is.")
    ] = False

    def run(self) -> int:
        spec = TopicSpec(
            self.topic,
            self.partitions,
            retention_ms=duration_ms(self.retention) if self.retention else None,
            retention_bytes=self.retention_bytes,
            replication=self.replication,
        )
        with self.session().broker() as broker:
            broker.admin().create_topic(spec, exists_ok=self.if_missing)
            print_topics(broker, [self.topic], as_json=self.as_json)
        return DONE


@dataclass(frozen=True)
class ListTopics(Command):
    match: Annotated[
        str | None, Option("--match", metavar="TEXT", help="Only names that contain this text.")
    ] = None

    def run(self) -> int:
        with self.session().broker() as broker:
            names = [topic.name for topic in broker.admin().describe_topics()]
            wanted = [name for name in names if self.match is None or self.match in name]
            print_topics(broker, wanted, as_json=self.as_json)
        return DONE


@dataclass(frozen=True)
class DescribeTopic(Command):
    topic: TopicName

    def run(self) -> int:
        with self.session().broker() as broker:
            topic, watermarks = look_at(broker.admin(), self.topic)
        rows = [
            (place.partition, held.low, held.end, held.end - held.low)
            for place, held in sorted(watermarks.items())
        ]
        facts = {"topic": topic.name} | topic_facts(topic)
        if not self.as_json:
            remark(f"{topic.name}: {_limits(topic)}, id {topic.id}")
        table = Table(("partition", "low", "end", "records"), rows, facts=facts)
        print_table(table, as_json=self.as_json, empty="")
        return DONE


@dataclass(frozen=True)
class ExtendTopic(Command):
    topic: TopicName
    partitions: Annotated[
        int, Option("--partitions", "-p", metavar="N", min=1, help="How many, in all.")
    ]

    def run(self) -> int:
        with self.session().broker() as broker:
            broker.admin().extend_topic(self.topic, self.partitions)
            print_topics(broker, [self.topic], as_json=self.as_json)
        return DONE


@dataclass(frozen=True)
class DeleteTopic(DestructiveCommand):
    topic: TopicName

    def run(self) -> int:
        session = self.session()
        with session.broker() as broker:
            _, watermarks = look_at(broker.admin(), self.topic)
            records = sum(held.end - held.low for held in watermarks.values())
            deed = Deed(
                action="topics.delete",
                target=self.topic,
                would=f"would delete topic {self.topic} with {len(watermarks)} partitions and "
                f"{records:,} records, and every group's position in it",
                how_many=records,
            )
            if not agreed(self, deed):
                return DONE if self.dry_run else FOUND_A_PROBLEM
            broker.admin().delete_topic(self.topic)
            tell(session, self, deed)
        table = Table(("topic", "partitions", "records"), [(self.topic, len(watermarks), records)])
        print_table(table, as_json=self.as_json, empty="")
        return DONE


@dataclass(frozen=True)
class TrimTopic(DestructiveCommand):
    topic: TopicName
    before: Annotated[
        str,
        Option(
            "--before", metavar="WHERE", help="An offset, a time (7d, 2026-11-18T09:00Z) or latest."
        ),
    ]
    partition: Annotated[
        int | None, Option("--partition", metavar="N", min=0, help="Only this one; all without it.")
    ] = None

    def run(self) -> int:
        session = self.session()
        place = parse_place(self.before)
        with session.broker() as broker:
            _, watermarks = look_at(broker.admin(), self.topic)
            held = chosen_partitions(watermarks, self.partition)
            before = offsets_at(broker, held, place)
            rows = [(*at, held[at].low, end, end - held[at].low) for at, end in before.items()]
            records = sum(row[-1] for row in rows)
            deed = Deed(
                action="topics.trim",
                target=self.topic,
                would=f"would delete {records:,} records of {self.topic} before {self.before}",
                how_many=records,
            )
            if not agreed(self, deed):
                return self._show(rows) if self.dry_run else FOUND_A_PROBLEM
            broker.admin().trim(before)
            tell(session, self, deed)
        return self._show(rows)

    def _show(self, rows: Sequence[Sequence[object]]) -> int:
        heads = ("topic", "partition", "low", "new low", "records")
        print_table(Table(heads, rows), as_json=self.as_json, empty="Nothing to trim.")
        return DONE


def print_topics(broker: Broker, names: Sequence[str], *, as_json: bool) -> None:
    admin = broker.admin()
    topics = admin.describe_topics(names) if names else []
    held = admin.watermarks([place for topic in topics for place in partitions_of(topic)])
    rows = [
        (topic.name, topic.partitions, _records(topic, held), _limits(topic), topic.replication)
        for topic in topics
    ]
    heads = ("topic", "partitions", "records", "retention", "replication")
    table = Table(heads, rows, extra=[topic_facts(topic) for topic in topics])
    print_table(table, as_json=as_json, empty="No topics. Make one: forebay topics create NAME")


def topic_facts(topic: TopicDescription) -> dict[str, object]:
    return {
        "id": topic.id,
        "retention_ms": topic.retention_ms,
        "retention_bytes": topic.retention_bytes,
    }


def _records(topic: TopicDescription, held: dict[TopicPartition, Watermarks]) -> int:
    return sum(held[place].end - held[place].low for place in partitions_of(topic))


def _limits(topic: TopicDescription) -> str:
    limits = []
    if topic.retention_ms is not None and topic.retention_ms >= 0:
        limits.append(short_duration(topic.retention_ms))
    if topic.retention_bytes is not None and topic.retention_bytes >= 0:
        limits.append(f"{topic.retention_bytes:,} bytes a partition")
    return ", ".join(limits) or "kept for good"


def add_topic_commands(app: Typer) -> None:
    app.command("create", help="Create a topic.\n\nforebay topics create orders -p 12")(CreateTopic)
    app.command("list", help="List the topics.\n\nforebay topics list --json")(ListTopics)
    app.command("describe", help="Show a topic.\n\nforebay topics describe orders")(DescribeTopic)
    app.command("extend", help="Add partitions.\n\nforebay topics extend orders -p 24")(ExtendTopic)
    app.command("delete", help="Delete a topic.\n\nforebay topics delete orders --dry-run")(
        DeleteTopic
    )
    app.command("trim", help="Delete old records.\n\nforebay topics trim orders --before 7d")(
        TrimTopic
    )
