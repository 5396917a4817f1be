import json

from forebay.cli.output import Table, json_line, plain_lines, shown, snake_case

TABLE = Table(("topic", "new low"), [("orders", 1_204), ("x", 3)], facts={"dry_run": True})


def test_the_keys_of_json_are_the_column_heads():
    assert json.loads(json_line(TABLE.as_object())) == {
        "items": [{"topic": "orders", "new_low": 1204}, {"topic": "x", "new_low": 3}],
        "total": 2,
        "dry_run": True,
    }
    assert snake_case("Lag in-flight") == "lag_in_flight"


def test_plain_lines_are_aligned_and_never_cut():
    long = "x" * 300
    lines = plain_lines(Table(("topic", "lag"), [(long, 5)]))
    assert lines[1] == f"{long}    5"
    assert plain_lines(TABLE) == ["topic   new low", "orders    1,204", "x             3"]


def test_an_unknown_value_is_not_shown_as_zero():
    assert shown(None) == "-"
    assert shown(0) == "0"
    assert shown(value=True) == "yes"


def test_a_name_with_an_escape_sequence_does_not_reach_the_terminal():
    assert "\x1b" not in plain_lines(Table(("group",), [("\x1b[2Jgone",)]))[1]
