import json

import pytest


@pytest.fixture
def orders(forebay):
    assert forebay("topics", "create", "orders", "-p", "2", "--retention", "7d").code == 0
    return forebay


def test_a_topic_is_made_found_grown_and_gone(orders):
    [item] = orders("topics", "list", "--json").items
    assert (item["topic"], item["partitions"], item["records"]) == ("orders", 2, 0)
    assert item["retention_ms"] == 7 * 86_400_000
    assert orders("topics", "create", "orders").code == 1
    assert orders("topics", "create", "orders", "--if-missing").code == 0
    assert orders("topics", "extend", "orders", "-p", "4", "--json").items[0]["partitions"] == 4
    assert orders("topics", "describe", "orders", "--json").object["total"] == 4
    gone = orders("topics", "delete", "orders", "--yes", "--reason", "a test")
    assert gone.code == 0
    assert json.loads(gone.err)["reason"] == "a test"
    assert orders("topics", "list", "--json").object["total"] == 0


def test_records_come_back_as_they_were_sent(orders):
    lines = [
        {"key": "k", "value": {"base64": "/wA="}, "headers": {"a": "1"}, "partition": 1},
        {"key": None, "value": None, "headers": [["a", None], ["a", "2"]], "partition": 0},
        {"key": "k", "value": "text", "timestamp": 1_700_000_000_000, "partition": 0},
    ]
    say = "".join(json.dumps(line) + "\n" for line in lines)
    sent = orders("topics", "produce", "orders", "--format", "json", "--json", say=say)
    assert sent.object["produced"] == 3
    assert sent.object["offsets"] == {"0": [0, 1], "1": [0, 0]}
    answer = orders("topics", "read", "orders", "--json")
    *rows, last = (json.loads(line) for line in answer.out.splitlines())
    assert last["items"] == rows
    assert last["total"] == 3
    found = {(row["partition"], row["offset"]): row for row in rows}
    assert found[1, 0]["value"] == {"base64": "/wA="}
    assert found[0, 0]["value"] is None
    assert found[0, 0]["headers"] == [["a", None], ["a", "2"]]
    assert found[0, 1]["timestamp"] == 1_700_000_000_000


def test_reading_filters_and_what_was_read_can_be_sent_elsewhere(orders):
    say = "".join(f'{{"key":"k{n % 3}","value":"{n}","partition":0}}\n' for n in range(9))
    orders("topics", "produce", "orders", "--format", "json", say=say)
    read = orders("topics", "read", "orders", "--key", "k1", "--from-offset", "2", "--json")
    assert [item["value"] for item in read.items] == ["4", "7"]
    assert orders("topics", "read", "orders", "--last", "2", "--json").object["total"] == 2
    assert orders("topics", "read", "orders", "--until", "1h ago", "--json").items == []
    orders("topics", "create", "copy")
    copied = orders("topics", "produce", "copy", "--format", "json", "--json", say=read.out)
    assert (copied.code, copied.object["produced"]) == (0, 2)
    assert orders("groups", "list", "--json").object["total"] == 0


def test_following_shows_what_arrives_and_ends_with_its_limit(orders):
    with orders.start("topics", "read", "orders", "-f", "--limit", "2", "--json") as reader:
        orders("topics", "produce", "orders", say="one\ntwo\n")
        out, err = reader.communicate(timeout=30)
    assert reader.returncode == 0, err
    assert [item["value"] for item in json.loads(out.splitlines()[-1])["items"]] == ["one", "two"]


def test_a_bad_line_does_not_hide_what_was_sent_before_it(orders):
    say = '{"value":"good"}\nbad\n{"value":"never"}\n'
    sent = orders("topics", "produce", "orders", "--format", "json", "--json", say=say)
    assert sent.code == 1
    assert (sent.object["produced"], sent.object["failed"]) == (1, 1)
    assert "Line 2 was not sent" in sent.err


def test_nothing_is_destroyed_without_a_yes(orders):
    orders("topics", "produce", "orders", say="one\n")
    for command in (["delete", "orders"], ["trim", "orders", "--before", "latest"]):
        asked = orders("topics", *command)
        assert asked.code == 2
        assert "--yes" in asked.err
        looked = orders("topics", *command, "--dry-run")
        assert (looked.code, "1 records" in looked.err) == (0, True)
    assert orders("topics", "list", "--json").items[0]["records"] == 1
    assert orders("topics", "trim", "orders", "--before", "latest", "--yes").code == 0
    assert orders("topics", "list", "--json").items[0]["records"] == 0
