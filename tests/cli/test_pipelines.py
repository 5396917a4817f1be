"""run, worker, try and audit, on an embedded broker in a folder of the test."""

import json

import pytest

ORDERS = """
from forebay import Done, Pipeline, Reject, Skip

orders = Pipeline("orders")

@orders.stage("orders", order_by="key", retry=["1s"], emits=["receipts"])
async def charge(order: dict, context):
    if order["amount"] <= 0:
        return Reject("the amount must be positive")
    if order["amount"] > 1000 and context.attempt == 1:
        raise TimeoutError("the bank is busy")
    return Done(emit={"receipts": {"id": order["id"]}})

@orders.sink("receipts", table="sqlite:///rows.db?table=receipts", key="id", columns={"id": str})
def row(receipt: dict):
    return Skip("not mine") if receipt["id"] == "skipped" else receipt
"""


@pytest.fixture
def orders(forebay):
    (forebay.folder / "orders.py").write_text(ORDERS)
    forebay("topics", "create", "orders", "--partitions", "2")
    return forebay


def produce(forebay, *amounts):
    lines = [
        json.dumps({"key": f"k{n}", "value": json.dumps({"id": f"o{n}", "amount": amount})})
        for n, amount in enumerate(amounts)
    ]
    answer = forebay("topics", "produce", "orders", "--format", "json", say="\n".join(lines))
    assert answer.code == 0


def test_a_run_until_idle_tells_what_it_did_and_what_waits(orders):
    produce(orders, 5, 0, 7)
    answer = orders("run", "orders:orders", "--until", "idle", "--json")
    assert answer.code == 0
    told = answer.object
    assert (told["handled"], told["dead_lettered"], told["emitted"]) == (3, 1, 2)
    assert sum(v for k, v in told["committed"].items() if k.startswith("orders:")) == 3
    assert told["stages"]["row"]["emitted"] == 2
    assert (told["left_behind"], told["exit"]) == (0, 0)
    assert "3 handled · 1 dead letters" in answer.err
    assert "nothing lost" in answer.err


def test_a_retry_that_waits_is_told_and_comes_back_in_the_next_run(orders):
    produce(orders, 5000)
    first = orders("run", "orders:orders", "--until", "count=1", "--json").object
    assert (first["handled"], first["retried"]) == (0, 1)
    audited = orders("audit", "orders:orders", "--json")
    assert audited.object["records"]["waiting"] + audited.object["records"]["resolved"] == 1
    second = orders("run", "orders:orders", "--until", "for=4s", "--json").object
    assert second["handled"] == 1
    assert orders("audit", "orders:orders", "--json").object["ok"] is True


def test_a_stop_at_an_offset_leaves_that_offset_for_later(orders):
    forebay = orders
    forebay("topics", "create", "one")
    (forebay.folder / "one.py").write_text(
        "from forebay import Pipeline\n"
        "one = Pipeline('one')\n"
        "@one.stage('one', retry=[])\n"
        "def take(value: bytes): ...\n"
    )
    forebay("topics", "produce", "one", say="\n".join(str(n) for n in range(10)))
    told = forebay("run", "one:one", "--until", "one:0=4", "--json").object
    assert (told["handled"], told["committed"]["one:0"]) == (4, 4)
    again = forebay("run", "one:one", "--until", "one:0=4", "--json").object
    assert again["handled"] == 0


def test_a_run_from_an_offset_handles_what_lies_behind_it_again(orders):
    produce(orders, 5, 6, 7)
    orders("run", "orders:orders", "--until", "idle")
    again = orders("run", "orders:orders", "--from", "earliest", "--until", "idle", "--json")
    assert again.object["handled"] == 3
    assert "orders-charge resumes at orders[0] 0, orders[1] 0" in again.err


def test_a_worker_runs_its_stage_alone(orders):
    produce(orders, 5, 6)
    answer = orders("worker", "orders:orders", "charge", "--until", "idle", "--json")
    assert answer.code == 0
    assert answer.object["handled"] == 2
    assert not (orders.folder / "rows.db").exists()


def test_several_workers_of_a_stage_share_its_partitions(orders):
    produce(orders, *range(1, 41))
    asked = ("worker", "orders:orders", "charge", "--count", "2", "--until", "idle", "--json")
    answer = orders(*asked)
    assert answer.code == 0
    assert answer.object["handled"] == 40


def test_a_worker_that_the_pipeline_does_not_have_is_refused_with_its_names(orders):
    answer = orders("worker", "orders:orders", "chrage")
    assert answer.code == 1
    assert "charge, row, retry-scheduler, dlq-handler" in answer.err


def test_an_explanation_starts_nothing_and_names_every_topic(orders):
    told = orders("run", "orders:orders", "--explain", "--json").object
    assert told["topics"]["owned"] == [
        "orders-charge.orders.again",
        "orders-charge.retry.1s",
        "orders-charge.dlq",
        "orders-row.dlq",
    ]
    assert told["mermaid"].startswith("flowchart LR")
    assert "orders-charge.dlq" not in orders("topics", "list").out
    text = orders("run", "orders:orders", "--explain")
    assert "```mermaid" in text.out


def test_trying_shows_outcomes_and_moves_nobody(orders):
    produce(orders, 5, 0, 5000)
    items = orders("try", "orders:orders", "charge", "--last", "10", "--json").items
    assert sorted(item["outcome"] for item in items) == ["dead letter", "done", "retry"]
    assert orders("groups", "list", "--json").items == []


def test_dev_mode_shows_what_would_be_sent_and_commits_nothing(orders):
    produce(orders, 5, 0, 5000)
    answer = orders("run", "orders:orders", "--create-topics", "--until", "idle", "--dev-mode")
    assert answer.code == 1
    assert "receipts" in answer.err
    orders("topics", "create", "receipts")
    answer = orders("run", "orders:orders", "--until", "idle", "--dev-mode", "--json")
    assert answer.code == 0
    assert answer.object["shown"] == {
        "receipts": 1,
        "orders-charge.dlq": 1,
        "orders-charge.retry.1s": 1,
    }
    assert orders("groups", "list", "--json").items == []
    assert orders("topics", "read", "receipts", "--json").object["total"] == 0


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("nowhere:p", "There is no module nowhere"),
        ("orders.py", "write module:pipeline"),
        ("orders:charge", "charge in orders is no pipeline. It holds orders."),
        ("broken:p", "Importing broken failed: ZeroDivisionError"),
        ("impossible:p", "does not say which columns its rows have"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told(orders, reference, sentence):
    (orders.folder / "broken.py").write_text("1 / 0")
    (orders.folder / "impossible.py").write_text(
        "from forebay import Pipeline\np = Pipeline('p')\n"
        "@p.sink('a', table='b')\ndef row(x: dict): ...\n"
    )
    answer = orders("run", reference)
    assert answer.code == 2
    assert sentence in answer.err


@pytest.mark.parametrize("until", ["never", "count=0", "orders=5", "for=soon"])
def test_an_end_that_makes_no_sense_is_refused(orders, until):
    assert orders("run", "orders:orders", "--until", until).code == 2
