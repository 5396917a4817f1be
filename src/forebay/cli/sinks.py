"""forebay sinks: where sinks stand, and how one goes on after records it never saw are gone."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from typer import Argument, Typer

from forebay import bootstrap
from forebay.broker.port import Broker
from forebay.cli.asking import Deed, agreed, tell
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command, DestructiveCommand
from forebay.cli.errors import WrongUse
from forebay.cli.loading import load_pipeline
from forebay.cli.output import Table, print_table
from forebay.cli.run import Reference
from forebay.core.records import Offset, TopicPartition
from forebay.core.sinks import Sink, SourcePartition
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import SinkStage

StageName = Annotated[str, Argument(metavar="SINK", help="The name of the sink stage.")]


class Standing(NamedTuple):
    """How far a sink has stored a partition, beside what its log holds."""

    source: SourcePartition
    position: Offset | None
    low: Offset
    end: Offset

    @property
    def gone(self) -> int:
        """Records that were deleted before they were stored."""
        return 0 if self.position is None else max(0, self.low - self.position)


@dataclass(frozen=True)
class ListSinks(Command):
    reference: Reference

    def run(self) -> int:
        pipeline = load_pipeline(self.reference, self.session())
        session = self.session()
        rows: list[tuple[object, ...]] = []
        with (
            session.broker() as broker,
            bootstrap.open_site(session.settings, broker, session.emit) as site,
        ):
            for stage in pipeline.sink_stages:
                sink = site.open_sink(pipeline, stage)
                for stands in _standings(broker, sink, stage):
                    source = stands.source
                    rows.append(
                        (
                            stage.name,
                            source.topic,
                            source.partition,
                            stands.position,
                            stands.low,
                            stands.end,
                            stands.gone,
                        )
                    )
                sink.close()
        heads = ("sink", "topic", "partition", "stored up to", "low", "end", "gone")
        print_table(Table(heads, rows), as_json=self.as_json, empty="The pipeline has no sink.")
        return DONE


@dataclass(frozen=True)
class SkipGone(DestructiveCommand):
    reference: Reference
    stage: StageName

    def run(self) -> int:
        pipeline = load_pipeline(self.reference, self.session())
        stage = _sink_stage(pipeline, self.stage)
        session = self.session()
        with ExitStack() as opened:
            broker = opened.enter_context(session.broker())
            site = opened.enter_context(bootstrap.open_site(session.settings, broker, session.emit))
            sink = site.open_sink(pipeline, stage)
            opened.callback(sink.close)
            behind = [stands for stands in _standings(broker, sink, stage) if stands.gone]
            deed = _deed(self.stage, behind)
            if not behind or not agreed(self, deed):
                return self._show(behind, DONE if self.dry_run or not behind else FOUND_A_PROBLEM)
            sink.commit([], {stands.source: stands.low for stands in behind})
            tell(session, self, deed)
        return self._show(behind, DONE)

    def _show(self, behind: list[Standing], code: int) -> int:
        rows = [
            (stands.source.topic, stands.source.partition, stands.position, stands.low)
            for stands in behind
        ]
        table = Table(("topic", "partition", "from", "to"), rows, facts={"dry_run": self.dry_run})
        empty = "Nothing is gone: the log holds all that this sink has not stored."
        print_table(table, as_json=self.as_json, empty=empty)
        return code


def _deed(stage: str, behind: list[Standing]) -> Deed:
    gone = sum(stands.gone for stands in behind)
    would = (
        f"would let sink {stage} go on behind {gone:,} records that were deleted before they were "
        f"stored, on {len(behind)} partitions"
    )
    return Deed("sinks.skip", stage, would, gone)


def _sink_stage(pipeline: Pipeline, name: str) -> SinkStage:
    for stage in pipeline.sink_stages:
        if stage.name == name:
            return stage
    names = ", ".join(stage.name for stage in pipeline.sink_stages) or "none"
    raise WrongUse(f"Pipeline {pipeline.name} has no sink {name}; it has {names}.")


def _standings(broker: Broker, sink: Sink[Any], stage: SinkStage) -> list[Standing]:
    admin = broker.admin()
    sources = [
        SourcePartition(topic.name, number, topic.id or topic.name)
        for topic in admin.describe_topics(list(stage.topics))
        for number in range(topic.partitions)
    ]
    positions = sink.position(sources)
    marks = admin.watermarks([TopicPartition(s.topic, s.partition) for s in sources])
    return [
        Standing(source, positions.get(source), *marks[TopicPartition(*source[:2])])
        for source in sources
    ]


def add_sink_commands(app: Typer) -> None:
    app.command("list", help="Show how far sinks have stored.\n\nforebay sinks list orders:orders")(
        ListSinks
    )
    app.command(
        "skip",
        help="Let a sink go on behind records that retention deleted before it stored them.\n\n"
        "forebay sinks skip orders:orders row --reason 'lost in the outage' --dry-run",
    )(SkipGone)
