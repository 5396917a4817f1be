import os
import socket

import pytest


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["topics", "read", "nix"], 1, "There is no topic nix"),
        (["topics", "produce", "nix"], 1, "There is no topic nix"),
        (["topics", "describe", "nix"], 1, "There is no topic nix"),
        (["topics", "create", "a b"], 1, "characters a broker refuses"),
        (["topics", "create", "x", "--retention", "soon"], 2, "is no duration"),
        (["topics", "create", "x", "-p", "0"], 2, "--partitions"),
        (["topics", "read", "nix", "--since", "soon"], 2, "is no time"),
        (["topics", "read", "nix", "--limit", "1", "--last", "1"], 2, "write one of them"),
        (["groups", "describe", "nix"], 1, "There is no group nix"),
        (["topics", "list", "--broker", "redis://x"], 2, "names no broker"),
        (["topics", "list", "--log-level", "loud"], 2, "write one of"),
        (["topics", "frobnicate"], 2, "frobnicate"),
    ],
)
def test_wrong_use_gets_a_sentence_and_never_a_stack(forebay, arguments, code, says):
    answer = forebay(*arguments)
    assert answer.code == code
    assert says in answer.err
    assert answer.out == ""


def test_a_read_outside_the_log_says_what_the_log_holds(forebay):
    forebay("topics", "create", "orders")
    answer = forebay("topics", "read", "orders", "--partition", "0", "--from-offset", "5")
    assert (answer.code, "holds 0 to 0" in answer.err) == (1, True)
    assert "has no partition 3" in forebay("topics", "read", "orders", "--partition", "3").err


def test_a_corrupt_file_is_told_by_every_command_and_by_doctor(forebay):
    (forebay.folder / "data").mkdir()
    (forebay.folder / "data" / "broker.db").write_bytes(os.urandom(65_536))
    listed = forebay("topics", "list", "--dir", "data")
    assert listed.code == 1
    assert "broker.db" in listed.err
    doctor = forebay("doctor", "--dir", "data", "--json")
    assert (doctor.code, doctor.object["ok"]) == (1, False)
    assert [item for item in doctor.items if not item["ok"] and item["do"]]


def test_a_file_where_the_folder_should_be_is_told(forebay):
    (forebay.folder / "data").write_text("no folder")
    assert forebay("topics", "list", "--dir", "data").code == 1
    assert forebay("doctor", "--dir", "data").code == 1


def test_doctor_is_content_on_a_fresh_machine_and_creates_nothing(forebay):
    answer = forebay("doctor", "--json")
    assert (answer.code, answer.object["ok"]) == (0, True)
    assert set(answer.items[0]) == {"check", "ok", "detail", "do"}
    assert list(forebay.folder.iterdir()) == []


def test_doctor_looks_at_a_broker_that_is_there(forebay):
    forebay("topics", "create", "orders")
    answer = forebay("doctor")
    assert answer.code == 0, answer.out
    assert "✗" not in answer.out
    assert "fsync" in answer.out


def test_a_kafka_that_does_not_answer_is_a_finding(forebay):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        answer = forebay("doctor", "--broker", f"kafka://127.0.0.1:{free.getsockname()[1]}")
    assert answer.code == 1
    assert "✗" in answer.out


def test_all_wrong_settings_are_told_in_one_message(forebay):
    environment = {"FOREBAY_BROKER": "kafka://h", "LOG_LEVEL": "loud"}
    answer = forebay("topics", "list", environment=environment)
    assert answer.code == 2
    assert "2 settings are wrong" in answer.err


def test_the_version_is_one_line(forebay):
    answer = forebay("--version")
    assert (answer.code, answer.out.split()[0]) == (0, "forebay")
