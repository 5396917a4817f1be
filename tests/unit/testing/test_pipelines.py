from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import pytest

import forebay.testing
from forebay import Done, Pipeline, Reject, Retry, Skip


@dataclass
class Order:
    id: str
    amount: float


def orders(**options):
    pipeline = Pipeline("orders")

    @pipeline.stage("orders", order_by="key", retry=["5s", "1m"], emits=["receipts"], **options)
    async def charge(order: Order, context):
        if order.amount <= 0:
            return Reject("amount must be positive")
        if order.amount > 900 and context.attempt < 3:
            return Retry("the bank is busy")
        return Done(emit={"receipts": {"id": order.id, "attempt": context.attempt}})

    @pipeline.sink("receipts", file="never-written.ndjson")
    def row(receipt: dict):
        return Skip("not mine") if receipt["id"] == "a2" else receipt

    return pipeline


def test_a_pipeline_is_stepped_without_broker_or_time_of_its_own():
    with forebay.testing.run(orders()) as run:
        run.send("orders", Order("a1", 5), key="k", headers={"trace_id": "t-1"})
        run.send("orders", Order("a2", 5), key="k")
        assert run.sent("receipts") == [{"id": "a1", "attempt": 1}, {"id": "a2", "attempt": 1}]
        assert [record.key for record in run.records("receipts")] == [b"k", b"k"]
        assert run.records("receipts")[0].headers == [("trace_id", b"t-1")]
        run.advance("5s")
        assert run.rows("row") == [{"id": "a1", "attempt": 1}]


def test_a_retry_comes_back_when_it_is_due_and_not_before():
    with forebay.testing.run(orders()) as run:
        run.send("orders", Order("late", 950))
        run.advance("4s")
        assert run.sent("receipts") == []
        run.advance("1s")
        assert run.sent("receipts") == []
        run.advance("1m")
        assert run.sent("receipts") == [{"id": "late", "attempt": 3}]
        assert run.dead_letters == []


def test_what_is_rejected_or_cannot_be_read_is_a_dead_letter_as_it_came():
    with forebay.testing.run(orders()) as run:
        run.send("orders", Order("free", 0))
        run.send("orders", b"\xff no json", headers=[("n", b"1"), ("n", None)])
        free, unreadable = run.dead_letters
        assert (free.stage, free.reason, free.value["id"]) == (
            "charge",
            "amount must be positive",
            "free",
        )
        assert (unreadable.category, unreadable.record.value) == ("undecodable", b"\xff no json")
        assert unreadable.record.headers == [("n", b"1"), ("n", None)]
        assert sum(run.committed("charge").values()) == 2


def test_shared_things_are_open_while_the_pipeline_runs():
    pipeline = Pipeline("shared")
    closed = []

    @pipeline.share
    @contextmanager
    def plain():
        yield "plain"
        closed.append("plain")

    @pipeline.share
    @asynccontextmanager
    async def waiting():
        yield "async"
        closed.append("async")

    @pipeline.stage("in", emits=["out"], retry=[])
    def handle(value: str, context):
        return Done(emit={"out": [value, context.shared["plain"], context.shared["waiting"]]})

    with forebay.testing.run(pipeline) as run:
        run.send("in", "x")
        assert run.sent("out") == ["x", "plain", "async"]
        assert closed == []
    assert closed == ["async", "plain"]


def test_a_pipeline_that_feeds_itself_for_ever_is_told_of():
    pipeline = Pipeline("loop")

    @pipeline.stage("in", retry=[])
    def again(value: str):
        return Done(emit={"in": value})

    with (
        pytest.raises(AssertionError, match="does not come to rest"),
        forebay.testing.run(pipeline) as run,
    ):
        run.send("in", "x")
