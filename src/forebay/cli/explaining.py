"""A pipeline's declaration as text and as a mermaid picture; starts nothing."""

from collections.abc import Iterator

from forebay.cli.command import DONE
from forebay.cli.output import Table, print_object, print_table, say
from forebay.core.durations import written
from forebay.engine.pipeline import Pipeline
from forebay.engine.routes import LEDGER, SCHEDULER
from forebay.engine.stages import DeltaTable, RecordStage, RowFile, SinkStage, SqlTable, Stage
from forebay.engine.topics import plan_topics


def explain(pipeline: Pipeline, *, as_json: bool) -> int:
    if as_json:
        print_object(_as_object(pipeline))
        return DONE
    say(f"pipeline {pipeline.name}, nothing was started\n")
    heads = ("stage", "kind", "reads", "group", "order", "at once", "retries after", "gives up to")
    rows = [_row(pipeline, stage) for stage in pipeline.stages]
    print_table(Table(heads, rows), as_json=False, empty="It has no stage.")
    say("")
    plan = plan_topics(pipeline)
    topics = [(topic.name, topic.partitions, "created by run") for topic in plan.owned]
    topics += [(topic.name, topic.partitions, "yours") for topic in plan.foreign]
    print_table(Table(("topic", "partitions", "whose"), topics), as_json=False, empty="")
    say("\n```mermaid\n" + "\n".join(mermaid(pipeline)) + "\n```")
    return DONE


def mermaid(pipeline: Pipeline) -> Iterator[str]:
    yield "flowchart LR"
    for stage in pipeline.stages:
        route = pipeline.route(stage)
        box = f"{stage.name}[{stage.name}]"
        for topic in route.inputs:
            yield f"  {_node(topic)} --> {box}"
        if isinstance(stage, RecordStage):
            for topic in stage.emits:
                yield f"  {box} --> {_node(topic)}"
            for tier in route.tiers:
                back = _node(next(iter(route.re_entries.values())))
                delay = written(tier.delay_seconds)
                yield f"  {box} -. fails .-> {_node(tier.topic)}"
                yield f"  {_node(tier.topic)} -. after {delay} .-> {back}"
            for again in route.re_entries.values():
                if again not in route.inputs:
                    yield f"  {_node(again)} --> {box}"
        else:
            yield f"  {box} --> {stage.name}_rows[({_target(stage)})]"
        if route.dead_letter_topic:
            yield f"  {box} -. gives up .-> {_node(route.dead_letter_topic)}"


def _row(pipeline: Pipeline, stage: Stage) -> tuple[object, ...]:
    route = pipeline.route(stage)
    letters = str(route.dead_letters)
    reads = ", ".join(route.inputs)
    if isinstance(stage, SinkStage):
        return (stage.name, f"sink to {_target(stage)}", reads, route.group, "-", 1, "-", letters)
    delays = ", ".join(written(tier.delay_seconds) for tier in route.tiers) or "never"
    return (
        stage.name,
        "record",
        reads,
        route.group,
        stage.order_by,
        stage.concurrency,
        delays,
        letters,
    )


def _as_object(pipeline: Pipeline) -> dict[str, object]:
    plan = plan_topics(pipeline)
    routes = [pipeline.route(stage) for stage in pipeline.stages]
    return {
        "pipeline": pipeline.name,
        "items": [
            {
                "stage": route.stage,
                "group": route.group,
                "reads": list(route.reads),
                "retries": [tier.topic for tier in route.tiers],
                "dead_letters": str(route.dead_letters),
            }
            for route in routes
        ],
        "total": len(routes),
        "topics": {
            "owned": [topic.name for topic in plan.owned],
            "foreign": [topic.name for topic in plan.foreign],
        },
        "groups": [route.group for route in routes]
        + [f"{pipeline.group_prefix}-{name}" for name in (SCHEDULER, LEDGER)],
        "mermaid": "\n".join(mermaid(pipeline)),
    }


def _target(stage: SinkStage) -> str:
    match stage.target:
        case SqlTable(name=name) | DeltaTable(name=name):
            return f"table {name}"
        case RowFile(path=path):
            return f"file {path}"
        case _:
            return "a sink of its own"


def _node(topic: str) -> str:
    return f"{topic.replace('.', '_').replace('-', '_')}([{topic}])"
