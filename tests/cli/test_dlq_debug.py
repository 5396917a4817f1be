from contextlib import ExitStack

import pytest

from cli.shop import AGAIN, BOOK_LETTERS, PERMANENT, Shop
from forebay.core.envelope import first_envelope, seal
from forebay.core.records import Record


@pytest.fixture
def shop(forebay):
    with ExitStack() as closing:
        yield Shop(forebay, closing)


def nothing_happened(shop):
    return shop.markers() == [] and shop.read(AGAIN) == [] and shop.read("receipts") == []


def test_the_debugger_stops_where_the_function_begins_with_the_record_in_hand(shop):
    (id,) = shop.give_up(b'{"amount": -5}')
    answer = shop("debug", id, say="p order\np context.shared\nc\n")
    assert answer.code == 0, answer.err
    assert 'charge()\n-> if order.get("busy"):' in answer.out
    assert "{'amount': -5}" in answer.out
    assert "{'bank': {'name': 'a bank'}}" in answer.out
    assert "charge rejects it (amount must be positive, not -5)." in answer.out
    assert "Nothing was sent or committed." in answer.out
    assert nothing_happened(shop)
    assert shop.audit() == [("debug", id, "")]


def test_outputs_are_shown_and_not_sent(shop):
    (id,) = shop.give_up(b'{"amount": 5}')
    answer = shop("debug", id, "--json", say="c\n")
    assert answer.items[0]["outcome"] == (
        'charge is done with it, with 1 outputs:\n  receipts: {"paid":5}'
    )
    assert nothing_happened(shop)


def test_an_async_function_is_stopped_at_its_beginning_too(shop):
    shop.mend("def charge(", "async def charge(")
    (id,) = shop.give_up(b'{"amount": 5}')
    answer = shop("debug", id, say="w\np order\nc\n")
    assert "charge()\n-> if order.get(" in answer.out
    assert "{'amount': 5}" in answer.out
    assert "charge is done with it, with 1 outputs:" in answer.out


def test_a_function_below_its_decorator_is_found(shop):
    shop.mend(
        "@shop.stage(",
        "def logged(call):\n"
        "    import functools\n"
        "    @functools.wraps(call)\n"
        "    def around(order: dict, context):\n"
        "        return call(order, context)\n"
        "    return around\n\n\n"
        "@shop.stage(",
    )
    shop.mend("def charge(", "@logged\ndef charge(")
    (id,) = shop.give_up(b'{"amount": -1}')
    answer = shop("debug", id, say="p order\nc\n")
    assert 'charge()\n-> if order.get("busy"):' in answer.out
    assert "around" not in answer.out.split("(Pdb)")[0]


def test_what_it_raises_is_looked_at_where_it_was_raised(shop):
    (id,) = shop.give_up(b'{"busy": true}')
    answer = shop("debug", id, say="c\np order\nq\n")
    assert 'raise TimeoutError(f"' in answer.out
    assert "{'busy': True}" in answer.out
    assert "charge raises TimeoutError: a bank did not answer" in answer.out
    assert "charge raised TimeoutError" in answer.err


@pytest.mark.parametrize("is_async", [False, True])
def test_leaving_the_debugger_ends_it_quietly(shop, is_async):
    if is_async:
        shop.mend("def charge(", "async def charge(")
    (id,) = shop.give_up(b'{"amount": 5}')
    for said in ("q\n", ""):
        answer = shop("debug", id, say=said)
        assert (answer.code, "was left before its end" in answer.out) == (0, True)


def test_what_cannot_be_decoded_never_reaches_the_function(shop):
    (id,) = shop.give_up(b"no json")
    answer = shop("debug", id)
    assert answer.code == 0
    assert "charge is never called: The value is no JSON" in answer.out


def test_the_row_of_a_sink_is_debugged_as_well(shop):
    record = Record(b'{"paid": 5}', b"k", [], "receipts", 0, 0, 1_000)
    failed = first_envelope("shop-book", record).failed(PERMANENT, 5_000, attempt=1)
    shop.tell(Record(record.value, record.key, seal(record, failed), BOOK_LETTERS))
    (item,) = shop("list", "--json").items
    answer = shop("debug", item["id"], say="p receipt\nc\n")
    assert "Receipt(paid=5)" in answer.out
    assert "book makes the row {'paid': 5}." in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nix"], 1, "No dead letter has the id"),
        ([], 2, "ID"),
        (["ID", "--of", "nix:shop"], 2, "There is no module nix"),
        (["ID", "--of", "shop:Receipt"], 2, "is no pipeline"),
        (["ID", "--of", "other:other"], 2, "No stage of other (wait) has shop-charge.dlq"),
    ],
)
def test_wrong_use_gets_a_sentence_and_never_a_stack(shop, forebay, arguments, code, says):
    (forebay.folder / "other.py").write_text(
        "from forebay import Pipeline\nother = Pipeline('other')\n"
        "@other.stage('x')\ndef wait(value: bytes): ...\n"
    )
    (id,) = shop.give_up(b"1")
    answer = shop("debug", *(id if word == "ID" else word for word in arguments))
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err


def test_without_its_pipeline_it_says_what_to_pass(shop):
    (id,) = shop.give_up(b"1")
    shop.hide_module()
    for command in (["debug", id], ["view", id, "--as-test"]):
        answer = shop(*command)
        assert (answer.code, "--of module:pipeline" in answer.err) == (2, True)
    assert "amount" in shop("view", id, "--as-test", "--of", "elsewhere:shop").out
