import json
import re
import time
from contextlib import ExitStack

import pytest

from cli.shop import AGAIN, BOOK_LETTERS, PERMANENT, Shop
from forebay.core.envelope import first_envelope, read_envelope, seal
from forebay.core.records import Record
from forebay.engine.letters import LetterFilter
from forebay.testing.waiting import eventually
from unit.engine.letters_told import BUSY, LETTERS, letter, marked, source

EVERY = LetterFilter()
REASON = ("--reason", "the bank is back")


@pytest.fixture
def shop(forebay):
    with ExitStack() as closing:
        yield Shop(forebay, closing)


def test_a_dry_run_says_what_would_go_where_how_fast_and_sends_nothing(shop):
    shop.fill(214)
    answer = shop("replay", "--rate", "50", "--dry-run")
    assert re.fullmatch(
        rf"214 records would go back to {AGAIN} at 50/s \(about 4 s\)\. Oldest [\d,]+ d\. "
        r"Nothing was sent\.\n",
        answer.out,
    )
    told = shop("replay", "--rate", "50", "--dry-run", "--limit", "10", "--json").object
    assert told["items"] == [{"topic": AGAIN, "records": 10}]
    assert (told["total"], told["seconds"], told["oldest_ms"]) == (10, 0.2, 5_000)
    assert told["dry_run"] is True
    assert (shop.read(AGAIN), shop.markers(), shop.audit()) == ([], [], [])


def test_a_dry_run_over_ten_thousand_is_quick(shop):
    shop.fill(10_000)
    begun = time.monotonic()
    answer = shop("replay", "--dry-run")
    assert time.monotonic() - begun < 10
    assert answer.out.startswith(f"10,000 records would go back to {AGAIN} as fast as")


def test_what_is_replayed_is_handled_again_and_resolved_or_open_again(shop, forebay):
    good, bad = shop.give_up(b'{"amount": 5}', b'{"amount": -5}', failure=BUSY)
    answer = shop("replay", *REASON, "--yes", "--json")
    assert answer.code == 0
    told = answer.object
    assert (told["sent"], told["planned"], told["refused"], told["passed_over"]) == (2, 2, 0, 0)
    assert [marker.kind for marker in shop.markers()] == ["replaying", "replaying"]
    assert [record.value for record in shop.read(AGAIN)] == [b'{"amount": 5}', b'{"amount": -5}']
    assert shop.audit()[-1] == ("replay", told["plan"], "the bank is back")
    run = forebay("run", "shop:shop", "--until", "idle")
    assert run.code == 0, run.err
    shop.fold()
    states = {item["id"]: item["state"] for item in shop("list", "--json").items}
    assert states == {good: "resolved", bad: "open"}
    assert "sent back by replay" in shop("view", good).out


def test_one_letter_is_replayed_by_its_id_and_its_value_edited(shop, forebay):
    _, id = shop.give_up(b"1", b'{"amount": "nine"}')
    (forebay.folder / "mended.json").write_text('{"amount": 9}')
    answer = shop("replay", id[:8], "--value", "mended.json", *REASON, "--yes")
    assert answer.out.startswith(f"1 of 1 records went back to {AGAIN}")
    (again,) = shop.read(AGAIN)
    assert (again.value, read_envelope(again).id) == (b'{"amount": 9}', id)
    shop.fold()
    page = shop("view", id).out
    assert "edited for replay" in page
    assert '"amount": "nine"' in page


def test_a_value_is_a_text_where_no_file_has_its_name(shop):
    (id,) = shop.give_up(b"1")
    shop("replay", id, "--value", '{"amount": 1}', *REASON, "--yes")
    assert [record.value for record in shop.read(AGAIN)] == [b'{"amount": 1}']


def test_it_asks_first_and_a_no_changes_nothing(shop):
    shop.give_up(b"1")
    asked = shop("replay", *REASON)
    assert (asked.code, "add --yes" in asked.err) == (2, True)
    assert "This would send 1 record back to" in asked.err
    assert (shop.read(AGAIN), shop.audit()) == ([], [])


def test_only_open_letters_are_replayed_and_one_that_is_not_is_told(shop):
    first, second = shop.give_up(b"1", b"2")
    shop.tell(marked(source(0), "discarded"))
    answer = shop("replay", first, *REASON, "--yes")
    assert (answer.code, "is discarded, not open. Nothing was sent." in answer.out) == (1, True)
    shop("replay", *REASON, "--yes")
    assert shop.replayed_ids() == [second]
    none = shop("replay", "--text", "nowhere", "--dry-run", "--json")
    assert (none.code, none.object["total"]) == (0, 0)


def test_what_was_replayed_five_times_needs_force(shop):
    shop.tell(letter(source(0), PERMANENT, replay=(5, "r-5")))
    careful = shop("replay", *REASON, "--yes")
    assert (careful.code, "--force takes them along" in careful.out) == (1, True)
    shop("replay", "--force", *REASON, "--yes")
    assert len(shop.replayed_ids()) == 1


def test_without_the_pipeline_the_way_back_is_seen_on_the_broker(shop):
    (id,) = shop.give_up(b"1")
    shop.hide_module()
    assert f"would go back to {AGAIN}" in shop("replay", "--dry-run").out
    shop("replay", *REASON, "--yes")
    assert shop.replayed_ids() == [id]


def test_where_the_way_back_cannot_be_seen_it_says_what_to_pass(shop):
    shop.give_up(b"1")
    shop.hide_module()
    shop.broker.admin().delete_topic(AGAIN)
    answer = shop("replay", "--dry-run")
    assert (answer.code, "--of module:pipeline" in answer.err) == (2, True)
    assert "Nothing was sent" in answer.err
    told = shop("replay", "--dry-run", "--of", "elsewhere:shop")
    assert f"1 record would go back to {AGAIN}" in told.out


def test_what_a_sink_gave_up_stays_and_is_counted(shop):
    shop.give_up(b"1")
    record = Record(b"no row", b"k", [], "receipts", 0, 0, 1_000)
    begun = first_envelope("shop-book", record)
    sealed = seal(record, begun.failed(PERMANENT, 5_000, attempt=1))
    shop.tell(Record(record.value, record.key, sealed, BOOK_LETTERS))
    dry = shop("replay", "--dry-run")
    assert "1 record would go back" in dry.out
    assert "1 more stay: no stage takes them back." in dry.out
    answer = shop("replay", *REASON, "--yes", "--json")
    assert (answer.code, answer.object["sent"], answer.object["refused"]) == (1, 1, 1)
    assert f"no stage takes back what is on {BOOK_LETTERS}" in answer.err
    only = shop("replay", "--pipeline", "shop.book", "--dry-run")
    assert (only.code, "What a sink gave up cannot be replayed" in only.err) == (2, True)


def planned(shop):
    rows = shop.database.read("SELECT id FROM replay_plans")
    return [str(id) for (id,) in rows]


def sent(shop):
    ((count,),) = shop.database.read("SELECT count(*) FROM replay_entries WHERE status = 'sent'")
    return count


def test_killed_twenty_times_and_gone_on_with_exactly_the_plan_was_replayed(shop):
    shop.fill(400)
    command = ["replay", *REASON, "--yes", "--rate", "5"]
    for _ in range(20):
        before = sent(shop)
        with shop.start(*command) as process:
            eventually(lambda: sent(shop) > before)  # noqa: B023  used at once
            process.kill()
            process.communicate()
        (plan,) = planned(shop)
        command = ["replay", "--resume", plan, "--yes", "--rate", "5"]
    assert 20 <= sent(shop) < 400
    shop.tell(letter(source(999), PERMANENT))
    last = shop("replay", "--resume", plan, "--yes", "--json")
    assert (last.code, last.object["planned"]) == (0, 400)
    assert (sent(shop), planned(shop)) == (400, [plan])
    meant = {entry.id for entry in shop.ledger.find(EVERY, 500).items if entry.origin.offset < 400}
    assert set(shop.replayed_ids()) == meant
    assert {marker.id for marker in shop.markers()} == meant


def test_a_replay_that_is_interrupted_says_how_to_go_on(shop):
    shop.fill(50)
    with shop.start("replay", *REASON, "--yes", "--rate", "5") as process:
        eventually(lambda: sent(shop) > 0)
        process.send_signal(2)
        _, err = process.communicate(timeout=30)
    (plan,) = planned(shop)
    assert process.returncode == 130
    assert f"forebay dlq replay --resume {plan}" in err
    other = shop("replay", "--limit", "1", *REASON, "--yes")
    assert f"Not at their end: {plan}" in other.err
    looked = shop("replay", "--resume", plan, "--dry-run")
    assert f"would go on with replay {plan}" in looked.err


def test_a_long_replay_says_how_far_it_is(shop):
    shop.fill(6)
    answer = shop("replay", *REASON, "--yes", "--rate", "2")
    assert answer.code == 0
    assert re.search(r"^\d of 6 sent$", answer.err, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "A replay needs a reason"),
        (["--reason", " "], 2, "A replay needs a reason"),
        (["nix", "--dry-run"], 1, "No dead letter has the id"),
        (["--rate", "0", "--dry-run"], 2, "--rate"),
        (["--limit", "0", "--dry-run"], 2, "--limit"),
        (["--state", "resolved", "--dry-run"], 1, "Only open dead letters can be replayed"),
        (["--value", "x", "--dry-run"], 1, "for one dead letter, and 2 were meant"),
        (["--resume", "r-nix"], 1, "There is no replay r-nix"),
        (["--resume", "r-nix", "--text", "x"], 2, "takes no ID, filter or value"),
        (["--of", "nix:shop", "--dry-run"], 2, "There is no module nix"),
        (["--of", "shop:nix", "--dry-run"], 2, "does not exist"),
        (["--of", "shop:Receipt", "--dry-run"], 2, "is no pipeline"),
    ],
)
def test_wrong_use_gets_a_sentence_and_sends_nothing(shop, arguments, code, says):
    shop.give_up(b"1", b"2")
    answer = shop("replay", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert (shop.read(AGAIN), shop.audit()) == ([], [])


def test_an_id_and_a_filter_together_are_refused(shop):
    (id,) = shop.give_up(b"1")
    answer = shop("replay", id, "--topic", LETTERS, "--dry-run")
    assert (answer.code, "write either" in answer.err) == (2, True)


def test_the_line_for_machines_is_the_last_and_the_only_one(shop):
    shop.give_up(b"1")
    (line,) = shop("replay", "--dry-run", "--json").out.splitlines()
    assert json.loads(line)["total"] == 1
