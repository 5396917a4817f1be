import forebay.testing
from forebay import Pipeline, Reject, Retry


def test_dead_letters_that_would_go_to_a_file_are_seen_and_resolve_their_offset():
    pipeline = Pipeline("shop")

    @pipeline.stage("orders", retry=["5s"], dead_letters="file:never-written.csv")
    def charge(value: str, context):
        if value == "bad":
            return Reject("no such account")
        return Retry("the bank is busy")

    with forebay.testing.run(pipeline) as run:
        run.send("orders", "bad", headers={"trace_id": "t-1"})
        run.send("orders", "busy")
        (bad,) = run.dead_letters
        assert (bad.value, bad.reason, bad.attempt) == ("bad", "no such account", 1)
        assert bad.record.headers == [("trace_id", b"t-1")]
        run.advance("6s")
        assert [buried.value for buried in run.dead_letters] == ["bad", "busy"]
        assert sum(run.committed("charge").values()) == 3


def test_a_sink_leaves_what_a_stage_of_its_topic_buries():
    pipeline = Pipeline("shop")

    @pipeline.stage("orders", retry=[])
    def charge(order: dict):
        return None

    @pipeline.sink("orders", file="never-written.ndjson")
    def row(order: dict):
        return order

    with forebay.testing.run(pipeline) as run:
        run.send("orders", b"no json")
        run.advance("6s")
        assert [buried.stage for buried in run.dead_letters] == ["charge"]


def test_a_sinks_function_may_reject():
    pipeline = Pipeline("shop")

    @pipeline.sink("orders", file="never-written.ndjson")
    def row(order: dict):
        return Reject("no such shop", category="shop")

    with forebay.testing.run(pipeline) as run:
        run.send("orders", {"id": 1})
        run.advance("6s")
        (buried,) = run.dead_letters
        assert (buried.reason, buried.category) == ("no such shop", "shop")
