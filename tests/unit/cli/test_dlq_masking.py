import json
from string import ascii_letters

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forebay.cli.dlq_masking import NoMask, mask_for

TEXTS = st.text(ascii_letters, min_size=4, max_size=12)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(0, 99) | st.just("x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("name"), inner),
    max_leaves=6,
)


@given(secrets=st.lists(TEXTS, min_size=1, max_size=4), around=PLAIN)
def test_a_sensitive_value_is_nowhere_to_be_read(secrets, around):
    value = json.dumps({"a": around, "b": [{"ssn": secrets}], "c": f"for {secrets[0]}!"}).encode()
    assume(not any(secret in json.dumps(around) for secret in secrets))
    mask = mask_for(value, ["ssn"])
    shown = json.dumps(mask.payload(value)) + mask.text(f"{secrets[-1]} and {secrets[0]}")
    assert [secret for secret in secrets if secret in shown] == []


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("see https://a.example/b.pdf?sig=x&se=1, then", "see https://a.example/b.pdf?*** then"),
        ("https://a.example/b", "https://a.example/b"),
        ("'https://a.example/b#top'", "'https://a.example/b?***'"),
        ("kafka://me:word@a.example:9092/x", "kafka://***@a.example:9092/x"),
        (
            "two https://a.example?x https://b.example?y",
            "two https://a.example?*** https://b.example?***",
        ),
        ("no link? at all", "no link? at all"),
    ],
)
def test_links_are_shown_without_what_opens_them(text, masked):
    assert mask_for(None, []).text(text) == masked
    assert NoMask().text(text) == text


def test_a_field_that_is_named_as_a_secret_is_hidden_without_being_declared():
    value = b'{"password": "abc", "trace_id": "t", "n": {"access_token": {"deep": "abcdef"}}}'
    mask = mask_for(value, [])
    assert mask.payload(value) == {
        "password": "***",
        "trace_id": "t",
        "n": {"access_token": "***"},
    }
    assert mask.text("got abcdef") == "got ***"


def test_numbers_are_hidden_where_they_are_quoted_and_short_ones_only_in_their_field():
    value = b'{"account": 123456, "pin": 7, "is_new": true, "none": null}'
    mask = mask_for(value, ["account", "pin", "is_new", "none"])
    assert mask.text("account 123456 on 7 True null") == "account *** on 7 True null"
    assert set(mask.payload(value).values()) == {"***"}


def test_what_is_no_json_is_shown_only_where_nothing_in_it_is_sensitive():
    assert mask_for(b"a text", []).payload(b"a text") == "a text"
    assert mask_for(b"\xff", []).payload(b"\xff") == {"base64": "/w=="}
    for value in (b"a text", b"\xff", b'"a text"'):
        assert "--reveal" in str(mask_for(value, ["ssn"]).payload(value))
    assert mask_for(None, ["ssn"]).payload(None) is None
