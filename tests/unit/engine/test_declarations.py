"""What cannot work is refused where it is declared, with a sentence."""

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from forebay import Pipeline
from forebay.core.backpressure import Bounds
from forebay.core.errors import InvalidName, InvalidRequest
from forebay.core.retries import RetryPolicy
from forebay.engine.stages import DeltaTable, RecordStage, RowFile, SinkStage, SqlTable, Topic

BY_ID = DeltaTable("orders", partition_by=("id",))
ROWS = {"file": "rows.ndjson"}
TABLE = "sqlite:///rows.db?table=orders"


@dataclass
class Order:
    id: str
    amount: float


def handle(value: bytes):
    return None


async def handle_async(value: bytes):
    return None


def handle_order(order: Order) -> Order:
    return order


def takes_three(a, b, c):
    return None


def takes_nothing():
    return None


def needs_keyword(value, *, client):
    return None


def yields(value):
    yield value


def of_nowhere(value: "Nowhere"):  # noqa: F821  that is the mistake
    return None


class Strange:
    """No schema can be made of it."""


def of_strange(value: Strange):
    return None


def stage(**options):
    return lambda: Pipeline("p").stage("in", **options)(handle)


def sink(function=handle, **options):
    return lambda: Pipeline("p").sink("in", **(ROWS | options))(function)


def function(call, **options):
    return lambda: Pipeline("p").stage("in", **options)(call)


def two_stages_of_a_name():
    pipeline = Pipeline("p")
    pipeline.stage("a")(handle)
    pipeline.stage("b")(handle)


def two_stages_of_one_dead_letter_topic():
    pipeline = Pipeline("p")
    pipeline.stage("a", name="one", dead_letters="p.dlq")(handle)
    pipeline.stage("b", name="two", dead_letters="p.dlq")(handle)


def a_stage_that_reads_anothers_retries():
    pipeline = Pipeline("p")
    pipeline.stage("a", name="one", retry=["5s"])(handle)
    pipeline.stage("p-one.retry.5s", name="two")(handle)


def a_stage_that_reads_its_own_dead_letters():
    Pipeline("p").stage(["a", "p-handle.dlq"])(handle)


def delta(name, key=(), **options):
    target = DeltaTable(name, **options)
    return lambda: Pipeline("p").sink("in", target=target, key=key)(handle_order)


def two_sinks_of_one_table():
    pipeline = Pipeline("p")
    pipeline.sink("in", table="orders", name="one")(handle_order)
    pipeline.sink("in", table="orders", name="two")(handle_order)


def two_sinks_of_one_file():
    pipeline = Pipeline("p")
    pipeline.sink("a", name="one", file="rows.ndjson")(handle)
    pipeline.sink("b", name="two", file="./rows.ndjson")(handle)


def bounds_of_nothing():
    Pipeline("p").stage("in", bounds=Bounds(records=0))(handle)


def topics(*declared):
    return lambda: Pipeline("p", topics=declared)


IMPOSSIBLE = {
    "a name that no group can have": (lambda: Pipeline("my pipeline"), "my pipeline"),
    "no name": (lambda: Pipeline(""), "name"),
    "a name that is no text": (lambda: Pipeline(7), "7"),
    "a group prefix that no group can have": (lambda: Pipeline("p", group_prefix="ä"), "prefix"),
    "a stage without a name": (function(lambda value: None), "name="),
    "a stage named like a worker of ours": (stage(name="retry-scheduler"), "retry-scheduler"),
    "two stages of a name": (two_stages_of_a_name, "handle"),
    "a topic that no broker takes": (lambda: Pipeline("p").stage("my topic")(handle), "my topic"),
    "no topic": (lambda: Pipeline("p").stage([])(handle), "no topic"),
    "the same topic twice": (lambda: Pipeline("p").stage(["a", "a"])(handle), "twice"),
    "an own topic twice": (topics(Topic("a", 2), Topic("a", 4)), "twice"),
    "an own topic without partitions": (topics(Topic("a", 0)), "partitions"),
    "an own topic that no broker takes": (topics(Topic("a b")), "a b"),
    "an output that no broker takes": (stage(emits=["my topic"]), "my topic"),
    "outputs that are letters": (stage(emits="receipts"), "receipts"),
    "sensitive fields that are letters": (stage(sensitive="name"), "name"),
    "an order that nobody knows": (stage(order_by="keys"), "keys"),
    "a start that nobody knows": (stage(start_at="newest"), "newest"),
    "no concurrency": (stage(concurrency=0), "concurrency"),
    "an inline function of many": (stage(inline=True, concurrency=2), "inline"),
    "an inline function that waits": (
        function(handle_async, inline=True, concurrency=1),
        "inline",
    ),
    "a timeout of nothing": (stage(timeout=0), "timeout"),
    "a timeout that is none": (stage(timeout="soon"), "soon"),
    "delays that shrink": (stage(retry=["10m", "5m"]), "grow"),
    "a delay twice": (stage(retry=["5m", "5m"]), "grow"),
    "a delay of nothing": (stage(retry=["0s"]), "in-place"),
    "a delay that is none": (stage(retry=["later"]), "later"),
    "delays that are one text": (stage(retry="5m"), "5m"),
    "delays that are one number": (stage(retry=300), "300"),
    "too many tries in place": (stage(retry_in_place=9), "9"),
    "a hook that waits": (stage(when_dead_lettered=handle_async), "when_dead_lettered"),
    "an option that nobody knows": (stage(concurency=3), "concurency"),
    "bounds that let nothing through": (bounds_of_nothing, "at least 1"),
    "two stages of one dead-letter topic": (two_stages_of_one_dead_letter_topic, "p.dlq"),
    "a stage that reads another's retries": (a_stage_that_reads_anothers_retries, "retry.5s"),
    "a stage that reads its own letters": (a_stage_that_reads_its_own_dead_letters, "dlq"),
    "a name that makes a topic too long": (
        lambda: Pipeline("p" * 90).stage("t" * 200, name="s" * 90)(handle),
        "characters",
    ),
    "a function of three": (function(takes_three), "3 required"),
    "a function of nothing": (function(takes_nothing), "takes_nothing"),
    "a function that needs a keyword": (function(needs_keyword), "client"),
    "a function that yields": (function(yields), "yields"),
    "a function of what is nowhere": (function(of_nowhere), "Nowhere"),
    "a function of what nobody can make": (function(of_strange), "Strange"),
    "a thing that is no function": (function(7, name="seven"), "7 is not"),
    "a sink without a place": (lambda: Pipeline("p").sink("in")(handle), "table="),
    "a sink with two places": (sink(table=TABLE), "one place"),
    "a Delta table whose name is a path": (delta("../orders"), "cannot be a table's name"),
    "a Delta table of a mode that is none": (delta("orders", mode="merge"), "append_missing"),
    "a Delta table that adds, with a key": (delta("orders", key=("id",)), "takes no key"),
    "a Delta table that replaces, without one": (delta("orders", mode="upsert"), "key none"),
    "a Delta table by what is no column": (delta("orders", partition_by=("day",)), "day"),
    "a Delta table by bytes": (
        lambda: Pipeline("p").sink("in", target=BY_ID, columns={"id": bytes})(handle),
        "holds bytes",
    ),
    "a Delta table without columns": (
        lambda: Pipeline("p").sink("in", table="orders")(handle),
        "columns",
    ),
    "two sinks of one Delta table": (two_sinks_of_one_table, "table orders"),
    "a table without a name": (
        lambda: Pipeline("p").sink("in", table="sqlite:///rows.db")(handle_order),
        "table=NAME",
    ),
    "a table on a host": (
        lambda: Pipeline("p").sink("in", table="sqlite://db/rows?table=a")(handle_order),
        "table=NAME",
    ),
    "a database that nobody knows": (
        lambda: Pipeline("p").sink("in", table="oracle:///rows?table=a")(handle_order),
        "oracle",
    ),
    "a table without columns": (
        lambda: Pipeline("p").sink("in", table=TABLE)(handle),
        "columns",
    ),
    "a key that is no column": (
        lambda: Pipeline("p").sink("in", table=TABLE, key="number")(handle_order),
        "number",
    ),
    "a row function that waits": (sink(handle_async), "plain"),
    "a batch of nothing": (sink(batch=0), "batch"),
    "a batch that is too large": (sink(batch=5_001), "5000"),
    "a batch that was cut before it began": (sink(every=-1), "-1"),
    "a sink that starts at the end": (sink(start_at="latest"), "latest"),
    "a sink whose dead letters go to a file": (sink(dead_letters=Path("a.csv")), "a.csv"),
    "an option that no sink has": (sink(order_by="key"), "order_by"),
    "two sinks of one file": (two_sinks_of_one_file, "rows.ndjson"),
}


@pytest.mark.parametrize(("declare", "said"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_cannot_work_is_refused_with_a_sentence(declare, said):
    with pytest.raises((InvalidRequest, InvalidName)) as refused:
        declare()
    sentence = str(refused.value)
    assert said in sentence
    assert sentence.endswith((".", "'."))
    assert len(sentence.split()) > 4


def test_a_stage_that_was_refused_is_not_half_declared():
    pipeline = Pipeline("p")
    pipeline.stage("a", name="one", dead_letters="p.dlq")(handle)
    with pytest.raises(InvalidRequest):
        pipeline.stage("b", name="two", dead_letters="p.dlq")(handle)
    assert [stage.name for stage in pipeline.stages] == ["one"]
    pipeline.stage("b", name="two")(handle)


def test_decorators_and_values_make_the_same_stages():
    decorated = Pipeline("p", topics=[Topic("a")])
    decorated.stage("a", retry=["5s"], timeout="1m", order_by="key")(handle)
    decorated.sink("a", table=TABLE, key="id")(handle_order)
    policy = RetryPolicy((5.0,))
    columns = {"id": str, "amount": float}
    charge = RecordStage(
        name="handle", reads="a", run=handle, retry=policy, timeout_seconds=60.0, order_by="key"
    )
    table = SinkStage(
        name="handle_order",
        reads="a",
        row=handle_order,
        target=SqlTable(Path("rows.db"), "orders"),
        columns=columns,
        key=("id",),
    )
    given = Pipeline("p", topics=[Topic("a")], stages=[charge, table])
    assert given.stages == decorated.stages
    assert given.routes == decorated.routes


def test_a_decorated_function_can_still_be_called():
    pipeline = Pipeline("p")
    assert pipeline.stage("a")(handle) is handle
    assert pipeline.sink("b", file="rows.ndjson")(handle_order) is handle_order


def test_a_table_of_an_absolute_path_has_four_slashes():
    pipeline = Pipeline("p")
    pipeline.sink("a", table="sqlite:////var/rows.db?table=orders")(handle_order)
    (stage,) = pipeline.sink_stages
    assert stage.target == SqlTable(Path("/var/rows.db"), "orders")


def test_a_table_without_an_address_is_a_delta_table_that_adds_or_with_a_key_replaces():
    pipeline = Pipeline("p")
    pipeline.sink("a", table="orders", name="one")(handle_order)
    pipeline.sink("a", table="newest", name="two", key="id")(handle_order)
    missing = DeltaTable("first", mode="append_missing")
    pipeline.sink("a", target=missing, name="three", key="id")(handle_order)
    assert [stage.target for stage in pipeline.sink_stages] == [
        DeltaTable("orders", mode="append"),
        DeltaTable("newest", mode="upsert"),
        missing,
    ]


def test_columns_that_may_be_none_are_of_their_type():
    pipeline = Pipeline("p")
    pipeline.sink("a", table="orders", columns={"id": str, "amount": float | None})(handle)
    assert pipeline.sink_stages[0].columns == {"id": str, "amount": float}


def test_columns_come_from_what_the_function_returns_or_are_given():
    pipeline = Pipeline("p")
    pipeline.sink("a", table=TABLE, name="one")(handle_order)
    pipeline.sink("a", table=TABLE, name="two", columns={"id": str})(handle)
    assert [stage.columns for stage in pipeline.sink_stages] == [
        {"id": str, "amount": float},
        {"id": str},
    ]
    pipeline.sink("a", file="rows.ndjson", name="three")(handle)
    assert pipeline.sink_stages[2].target == RowFile(Path("rows.ndjson"))


def test_what_handlers_share_is_known_by_its_name():
    pipeline = Pipeline("p")

    @pipeline.share
    @contextmanager
    def client():
        yield 1

    assert list(pipeline.shared) == ["client"]


def test_a_partial_function_needs_a_name_and_has_one():
    with pytest.raises(InvalidRequest, match="name="):
        Pipeline("p").stage("a")(partial(handle))
    pipeline = Pipeline("p")
    pipeline.stage("a", name="handle")(partial(handle))
    assert pipeline.record_stages[0].name == "handle"
