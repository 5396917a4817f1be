import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.cli.errors import WrongUse
from forebay.cli.payload import (
    from_json,
    headers_from_json,
    headers_to_json,
    one_line,
    to_json,
)

names = st.text(min_size=1)
values = st.none() | st.binary()


@given(values)
def test_any_value_survives_the_way_through_json(value):
    assert from_json(to_json(value), "value") == value


@given(st.lists(st.tuples(names, values)))
def test_headers_survive_it_repeated_names_and_order_included(headers):
    assert headers_from_json(headers_to_json(headers)) == tuple(headers)


@pytest.mark.parametrize("value", [3, {"base64": "%"}, {"base64": 1}, {"a": "b"}, [], "\ud800"])
def test_a_value_that_is_neither_text_nor_base64_is_refused(value):
    with pytest.raises(WrongUse, match="the value"):
        from_json(value, "value")


@pytest.mark.parametrize("headers", ["a=b", [["a"]], [[1, "b"]], {"a": 3}])
def test_headers_of_another_shape_are_refused(headers):
    with pytest.raises(WrongUse, match="header"):
        headers_from_json(headers)


def test_null_text_null_and_empty_look_different():
    assert len({one_line(None), one_line(b"null"), one_line(b""), one_line(b"\xff")}) == 4


@given(st.binary())
def test_no_value_can_speak_to_the_terminal_or_add_a_line(value):
    shown = one_line(value)
    assert not any(ord(character) < 32 or 0x7F <= ord(character) < 0xA0 for character in shown)


def test_a_long_value_is_cut_on_a_terminal_and_says_how_long_it_was():
    assert one_line(b"x" * 1_000, 10) == "xxxxxxxxxx… (1,000 bytes)"
