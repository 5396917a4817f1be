import gzip
import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.shop import PERMANENT, Shop
from forebay.core.envelope import first_envelope
from forebay.core.failures import Failure
from forebay.core.records import Record
from forebay.engine.dead_letters import DeadLetter
from forebay.engine.letter_file import CsvLetters
from unit.engine.letters_told import BUSY, LETTERS, letter, marked, source

NUMBER = "123-45-678"
ORDER = json.dumps(
    {
        "amount": -5,
        "ssn": NUMBER,
        "customer": {"api_token": "t-987654"},
        "link": "https://files.example/a.pdf?sig=stolen",
    }
).encode()


@pytest.fixture
def shop(forebay):
    with ExitStack() as closing:
        yield Shop(forebay, closing)


def test_a_list_has_the_columns_of_the_spec_and_ours_the_newest_first(shop):
    shop.give_up(b"{}", ORDER, headers=[("trace_id", b"tr-1")])
    lines = shop("list").out.splitlines()
    heads = ("id", "state", "offset", "trace id", "attempts", "category", "reason", "url")
    assert lines[0].split("  ")[0].strip() == "id"
    assert [head for head in heads if head not in lines[0]] == []
    assert len(lines) == 3
    first = shop("list", "--json").items[0]
    assert (first["offset"], first["trace_id"], first["attempts"]) == (1, "tr-1", 2)
    assert (first["category"], first["state"], first["pipeline"]) == (
        *("permanent", "open", "shop.charge"),
    )
    assert (first["topic"], first["retry_count"], first["error_category"]) == (
        *("orders", 1, "permanent"),
    )
    assert first["url"].startswith("files.example #")
    assert "stolen" not in json.dumps(first)


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ([], [2, 1, 0]),
        (["--pipeline", "shop"], [2, 1, 0]),
        (["--domain", "shop.charge"], [2, 1, 0]),
        (["--pipeline", "shop.book"], []),
        (["--topic", "orders", "--key", "customer-1"], [1]),
        (["--topic", LETTERS], [2, 1, 0]),
        (["--category", "transient"], [0]),
        (["--text", "BANK is busy"], [0]),
        (["--text", "apple"], [1]),
        (["--state", "discarded"], [2]),
        (["--from", "1970-01-01T00:00:05.001Z", "--to", "1970-01-01T00:00:05.002Z"], [1]),
    ],
)
def test_a_list_shows_what_all_its_filters_match(shop, options, offsets):
    shop.give_up(b"{}", failure=BUSY)
    shop.give_up(b'{"fruit": "apple"}', b"{}", first=1)
    shop.tell(marked(source(2), "discarded"))
    answer = shop("list", *options, "--json")
    assert [item["offset"] for item in answer.items] == offsets
    assert answer.object["total"] == len(offsets)


def test_the_total_counts_what_matches_and_not_what_is_shown(shop):
    shop.fill(30)
    answer = shop("list", "--limit", "4", "--json").object
    assert (len(answer["items"]), answer["total"]) == (4, 30)
    assert "4 of 30" in shop("list", "--limit", "4").err


def test_stats_group_by_cause_and_say_what_to_do(shop):
    shop.give_up(b"1", b"2", b"3", failure=BUSY)
    shop.give_up(b"4", first=3)
    first, second = shop("stats", "--json").items
    assert (first["open"], first["reason"], first["pipeline"]) == (3, BUSY.reason, "shop.charge")
    assert first["what_to_do"].endswith("then replay.")
    assert (first["first"], first["last"]) == (
        *("1970-01-01T00:00:04.900Z", "1970-01-01T00:00:05.002Z"),
    )
    assert second["open"] == 1
    by_cause = shop("list", "--cause", first["cause"][:5], "--json").object
    assert by_cause["total"] == 3
    table = shop("stats", "--limit", "1")
    assert table.out.splitlines()[0].split() == [
        *("cause", "reason", "pipeline", "open", "first", "last", "what", "to", "do"),
    ]
    assert " d ago" in table.out
    assert "4 open of 4 dead letters with 2 causes" in table.err


def test_a_view_shows_where_it_came_from_what_happened_and_what_one_can_do(shop):
    headers = [("trace_id", b"tr-1"), ("region", b"north"), ("region", None)]
    (id,) = shop.give_up(ORDER, headers=headers)
    shop.tell(marked(source(0), "note", actor="uid 7", reason="asked the sender"))
    page = shop("view", "tr-1").out
    for told in (
        *(f"{id} · shop.charge · open", "orders[0] at 0", f"{LETTERS}[0] at 0"),
        *("attempt 1 failed", "attempt 2 failed", "note of uid 7: asked the sender"),
        *("region  north", "region  (null)", "customer-0", '"amount": -5'),
        f'forebay dlq replay {id} --reason "…"',
    ):
        assert told in page


def test_a_view_hides_what_is_sensitive_wherever_it_stands(shop):
    stack = f"Traceback …\nValueError: {NUMBER} at https://files.example/a.pdf?sig=stolen"
    failure = Failure("permanent", f"no customer {NUMBER}", "ValueError", stack)
    shop.give_up(ORDER, failure=failure, headers=[("ssn-of", NUMBER.encode())])
    (item,) = shop("list", "--json").items
    for as_json in ([], ["--json"]):
        page = shop("view", item["id"], *as_json).out
        assert "https://files.example/a.pdf?***" in page
        assert [text for text in (NUMBER, "stolen", "t-987654") if text in page] == []
    assert shop.audit() == []


def test_who_reveals_it_is_in_the_audit_trail_and_in_the_log(shop):
    (id,) = shop.give_up(ORDER)
    answer = shop("view", id, "--reveal", "--reason", "the sender called", "--json")
    assert answer.items[0]["payload"] == json.loads(ORDER)
    assert shop.audit() == [("reveal", id, "the sender called")]
    event = json.loads(answer.err.splitlines()[0])
    assert (event["event"], event["action"], event["target"]) == ("audit.action", "dlq.reveal", id)


def test_what_cannot_be_parsed_is_hidden_whole_when_a_field_of_it_is_sensitive(shop):
    cut = ORDER[:40]
    (id,) = shop.give_up(cut, failure=BUSY)
    assert NUMBER in cut.decode()
    page = shop("view", id)
    assert NUMBER not in page.out
    assert "--reveal shows it" in page.out
    assert NUMBER in shop("view", id, "--reveal").out


def test_without_its_pipeline_a_view_says_that_it_cannot_know_what_is_sensitive(shop):
    (id,) = shop.give_up(ORDER)
    shop.hide_module()
    page = shop("view", id)
    assert "--of module:pipeline" in page.err
    assert [text for text in ("stolen", "t-987654") if text in page.out] == []
    assert NUMBER not in shop("view", id, "--of", "elsewhere:shop").out


@pytest.mark.parametrize("value", [b"\xff\x00\x01", b"", None, b"[1, 2]", b'"text"', b"\x1b[2J"])
def test_any_payload_can_be_viewed_and_none_speaks_to_the_terminal(shop, value):
    (id,) = shop.give_up(value)
    page = shop("view", id, "--reveal")
    assert page.code == 0
    assert "\x1b" not in page.out
    assert shop("view", id, "--json").object["total"] == 1


def test_a_letter_is_found_by_its_id_a_beginning_of_it_or_its_trace_id(shop):
    ids = shop.give_up(b"1", headers=[("trace_id", b"tr-1")])
    ids += shop.give_up(b"2", b"3", first=1, headers=[("trace_id", b"tr-2")])
    for asked in (ids[0], ids[0][:9], "tr-1"):
        assert shop("view", asked, "--json").items[0]["id"] == ids[0]
    several = shop("view", "tr-2")
    assert (several.code, "means several dead letters" in several.err) == (1, True)
    unknown = shop("view", "nix")
    assert (unknown.code, "No dead letter has the id" in unknown.err) == (1, True)


def run_test(folder, name):
    command = [sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_test_made_of_a_letter_fails_until_its_function_is_mended(shop, forebay):
    value = b'{"amount": -5, "text": "' + b"\xc3\xa9'\\\\\\\"" * 40 + b'"}'
    (id,) = shop.give_up(value, headers=[("trace_id", b"tr-1"), ("trace_id", None)])
    made = shop("view", id, "--as-test")
    name = f"test_dead_letter_{id[:8]}.py"
    assert name in made.err
    assert shop.audit() == [("view as test", id, "")]
    (forebay.folder / name).write_text(made.out)
    failed = run_test(forebay.folder, name)
    assert (failed.returncode, "amount must be positive" in failed.stdout) == (1, True)
    shop.mend('["amount"] <= 0', '["amount"] > 1e9')
    assert run_test(forebay.folder, name).returncode == 0


def test_a_binary_letter_without_key_makes_a_test_as_well(shop, forebay):
    record = Record(b"\xff" * 200, None, [], "orders", 0, 3, 1_003)
    (id,) = shop.give_up(record.value)
    (forebay.folder / "test_it.py").write_text(shop("view", id, "--as-test").out)
    assert "The value is no JSON" in run_test(forebay.folder, "test_it.py").stdout


def filed(path: Path):
    letters = CsvLetters(path)
    for number, value in enumerate([b'{"trace_id": "tr-9"}', b"\xff", ORDER]):
        record = source(number, value)
        failure = Failure("permanent", "no https://files.example/a?sig=stolen", "KeyError")
        envelope = first_envelope("mod", record).failed(failure, 5_000 + number, attempt=1)
        letters.write([DeadLetter(record, envelope)])
    letters.close()


def test_a_file_of_the_mod_is_listed_in_the_same_columns(forebay):
    filed(forebay.folder / "kafka_dlq.csv")
    answer = forebay("dlq", "list", "--file", "kafka_dlq.csv", "--json")
    assert [item["offset"] for item in answer.items] == [2, 1, 0]
    last = answer.items[-1]
    assert (last["trace_id"], last["attempts"], last["category"]) == ("tr-9", 1, "KeyError")
    assert last["topic"] == "orders"
    assert "stolen" not in answer.out
    lines = forebay("dlq", "list", "--file", "kafka_dlq.csv", "--text", "TR-9").out.splitlines()
    assert (len(lines), lines[0].startswith("id")) == (2, True)
    one = forebay("dlq", "list", "--file", "kafka_dlq.csv", "--key", "customer-1", "--json")
    assert one.object["total"] == 1


def test_a_rotated_file_is_listed_and_what_was_cut_off_is_counted(forebay):
    path = forebay.folder / "dlq.csv"
    filed(path)
    with path.open("ab") as cut:
        cut.write(b'2026-01-01T00:00:00Z,orders,0,"17')
    with path.open("rb") as plain, gzip.open(f"{path}.1.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    answer = forebay("dlq", "list", "--file", "dlq.csv.1.gz", "--json")
    assert (answer.object["total"], "1 more rows cannot be read" in answer.err) == (3, True)


def test_an_export_gives_everything_back_byte_for_byte(shop, forebay):
    headers = [("a", b"\xff"), ("a", None)]
    shop.give_up(ORDER, b"\xff\x00", None, headers=headers)
    answer = shop("export")
    found = [json.loads(line) for line in answer.out.splitlines()]
    assert [item["value"] for item in found] == [None, {"base64": "/wA="}, ORDER.decode()]
    assert found[0]["headers"] == [["a", {"base64": "/w=="}], ["a", None]]
    assert found[0]["key"] == "customer-2"
    assert shop.audit() == [("export", "all dead letters", "")]
    told = shop("export", "letters.ndjson", "--key", "customer-1", "--json").object
    assert (told["items"], told["total"]) == ([{"file": "letters.ndjson", "exported": 1}], 1)
    target = forebay.folder / "letters.ndjson"
    assert json.loads(target.read_text())["offset"] == 1
    assert target.stat().st_mode & 0o077 == 0


def test_an_export_of_many_that_failed_in_one_millisecond_leaves_none_out(shop):
    sent = [source(number, b"{}") for number in range(1_200)]
    shop.tell(*(letter(record, PERMANENT, at_ms=5_000) for record in sent))
    offsets = [json.loads(line)["offset"] for line in shop("export").out.splitlines()]
    assert sorted(offsets) == list(range(1_200))
    assert len(shop("export", "--limit", "700").out.splitlines()) == 700


def test_without_a_ledger_every_command_says_where_it_would_be(forebay):
    commands = (
        *(["list"], ["stats"], ["view", "x"], ["export"], ["debug", "x"], ["note", "x", "y"]),
        *(["replay", "--dry-run"], ["discard", "x", "--reason", "y"]),
        ["resolve", "x", "--reason", "y"],
    )
    for command in commands:
        answer = forebay("dlq", *command)
        assert (answer.code, answer.out) == (1, ""), command
        assert "There is no ledger of dead letters here: forebay-data/state.db" in answer.err
    assert list(forebay.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["list", "--from", "soon"], 2, "is no time"),
        (["list", "--state", "lost"], 2, "lost"),
        (["list", "--limit", "0"], 2, "--limit"),
        (["list", "--file", "nix.csv"], 1, "nix.csv"),
        (["list", "--file", "shop.py"], 1, "is no dead-letter file"),
        (["list", "--file", "shop.py", "--cause", "a"], 2, "leave them out"),
        (["stats", "--to", "soon"], 2, "is no time"),
        (["view"], 2, "ID"),
        (["view", "nix"], 1, "No dead letter has the id"),
        (["view", "customer", "--as-test", "--json"], 1, "No dead letter has the id"),
        (["export", "shop.py"], 2, "shop.py exists"),
        (["export", "nowhere/letters.ndjson"], 1, "nowhere"),
        (["note", "nix", "text"], 1, "No dead letter has the id"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_wrong_use_gets_a_sentence_and_never_a_stack(shop, arguments, code, says):
    answer = shop(*arguments)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err


def test_a_ledger_that_is_no_database_is_told(forebay):
    (forebay.folder / "forebay-data").mkdir()
    (forebay.folder / "forebay-data" / "state.db").write_bytes(b"no database" * 500)
    answer = forebay("dlq", "list")
    assert (answer.code, "state.db" in answer.err) == (1, True)
