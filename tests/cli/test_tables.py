"""A pipeline into Delta tables, and what `forebay tables` tells of them."""

import copy
import json
import shutil
import subprocess
import sys

import pytest

from cli.conftest import CommandLine

ORDERS = """
from dataclasses import dataclass
from datetime import date

from forebay import Pipeline
from forebay.engine.stages import DeltaTable

orders = Pipeline("orders")


@dataclass
class Order:
    id: str
    amount: float | None
    day: date


@orders.sink("orders", table="every", every="0.1s", name="every")
def every_order(order: Order) -> Order:
    return order


@orders.sink("orders", table="newest", key="id", every="0.1s", name="newest")
def newest(order: Order) -> Order:
    return order


by_day = DeltaTable("first", partition_by=("day",), mode="append_missing")


@orders.sink("orders", target=by_day, key="id", every="0.1s", name="first")
def first(order: Order) -> Order:
    return order
"""
LINES = [
    {"id": "a", "amount": 1.5, "day": "2026-01-05"},
    {"id": "b", "amount": None, "day": "2026-01-06"},
    {"id": "a", "amount": 2.5, "day": "2026-01-05"},
    {"id": 7},
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory, bytecode):
    """Filled once: nothing below writes there, but for the one that takes a copy."""
    forebay = CommandLine(tmp_path_factory.mktemp("orders"), bytecode)
    (forebay.folder / "orders.py").write_text(ORDERS)
    forebay("topics", "create", "orders")
    say = "\n".join(json.dumps(line) for line in LINES)
    assert forebay("topics", "produce", "orders", say=say).code == 0
    answer = forebay("run", "orders:orders", "--until", "idle", "--json")
    assert answer.code == 0
    assert answer.object["dead_lettered"] == 3
    return forebay


def files_of(forebay, table):
    return sorted((forebay.folder / "forebay-data" / "tables" / table).glob("**/part-*.parquet"))


def test_tables_are_listed_with_their_figures(filled):
    listed = {item["table"]: item for item in filled("tables", "list", "--json").items}
    assert {name: item["rows"] for name, item in listed.items()} == {
        "every": 3,
        "newest": 2,
        "first": 2,
    }
    for name, item in listed.items():
        assert item["files"] == len(files_of(filled, name)), name
        assert item["bytes"] == sum(file.stat().st_size for file in files_of(filled, name))
    assert filled("tables", "list", "--json", "--dir", "elsewhere").object == {
        "items": [],
        "total": 0,
    }


def test_a_table_is_shown_with_its_columns_and_how_far_it_was_filled(filled):
    told = filled("tables", "show", "first", "--json").object
    assert [(item["column"], item["type"], item["part"]) for item in told["items"]] == [
        ("id", "string", "key"),
        ("amount", "double", None),
        ("day", "date", "partition"),
    ]
    assert (told["total"], told["rows"], told["partitions"]) == (3, 2, 2)
    (position,) = told["positions"]
    assert (position["sink"], position["topic"], position["next_offset"]) == (
        "orders-first",
        "orders",
        4,
    )
    text = filled("tables", "show", "first")
    assert "orders-first" in text.out
    assert "2 rows in 2 files" in text.err


def test_history_counts_what_it_could_show(filled):
    told = filled("tables", "history", "newest", "--limit", "1", "--json").object
    (newest,) = told["items"]
    assert newest["operation"] == "WRITE"
    assert told["versions"] == newest["version"] + 1 > told["total"] == 1


def test_a_whole_table_is_verified_and_says_how_much_it_looked_at(filled):
    answer = filled("tables", "verify", "newest", "--json")
    assert answer.code == 0
    assert answer.object == {
        "items": [],
        "total": 0,
        "ok": True,
        "location": "forebay-data/tables/newest",
        "files": 1,
        "rows": 2,
        "key": ["id"],
        "keys_checked": True,
    }
    assert "no id is there twice" in filled("tables", "verify", "newest").out
    assert "no key is known" in filled("tables", "verify", "every").out


def test_a_table_with_a_fault_is_a_problem(filled, tmp_path):
    shutil.copytree(filled.folder, tmp_path, dirs_exist_ok=True)
    filled = copy.copy(filled)
    filled.folder = tmp_path
    doubled = filled("tables", "verify", "every", "--key", "id", "--json")
    assert doubled.code == 1
    assert [(item["kind"], item["subject"]) for item in doubled.items] == [("doubled_row", "a")]
    files_of(filled, "every")[0].unlink()
    gone = filled("tables", "verify", "./forebay-data/tables/every", "--key", "id", "--json")
    assert gone.code == 1
    assert [item["kind"] for item in gone.items] == ["missing_file"]
    assert gone.object["keys_checked"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("show", "nothing"), 2, "there are: every, first, newest"),
        (("show", "./nowhere"), 1, "There is no table at ./nowhere"),
        (("verify", "every", "--key", "number"), 1, "no column number; it has id, amount, day"),
        (("history", "every", "--limit", "0"), 2, "limit"),
    ],
)
def test_what_cannot_be_shown_is_told(filled, arguments, code, sentence):
    answer = filled("tables", *arguments)
    assert answer.code == code
    assert sentence in answer.err


WITHOUT_LAKEHOUSE = """
import sys
for name in ("polars", "deltalake", "obstore"):
    sys.modules[name] = None
from forebay.cli.main import run
sys.argv = ["forebay", *sys.argv[1:]]
run()
"""


def test_without_the_extra_the_command_that_installs_it_is_told(filled):
    def without(*arguments):
        return subprocess.run(
            [sys.executable, "-c", WITHOUT_LAKEHOUSE, *arguments],
            cwd=filled.folder,
            env=filled.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    for arguments in (("tables", "show", "every"), ("sinks", "list", "orders:orders")):
        answer = without(*arguments)
        assert answer.returncode == 1
        assert "pip install 'forebay[lakehouse]'" in answer.stderr
        assert "Traceback" not in answer.stderr
