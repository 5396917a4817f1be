"""Values on their way into functions and out of them, and what is said of those that do not fit."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_validator

from forebay.core.errors import InvalidRequest
from forebay.core.records import Record
from forebay.engine.payloads import (
    Undecodable,
    columns_of,
    decoder_for,
    encode,
    row_values,
)

NOBODYS_BUSINESS = "hunter2@example.org"


@dataclass
class Order:
    id: str
    amount: float = 1.0


class Account(BaseModel):
    name: str
    age: int
    kind: Literal["free", "paid"] = "free"

    @field_validator("name")
    @classmethod
    def is_short(cls, name: str) -> str:
        if len(name) > 40:
            raise ValueError("a name has 40 characters at most")
        return name


def decoded(annotation: object, value: bytes | None) -> Any:
    return decoder_for(annotation)(Record(value, b"k", [], "orders", 0, 7))


READ = {
    "bytes": (bytes, b"\xff", b"\xff"),
    "text": (str, "größe".encode(), "größe"),
    "an object": (dict, b'{"a": 1}', {"a": 1}),
    "an object of anything": (dict[str, Any], b'{"a": 1}', {"a": 1}),
    "an object of numbers": (dict[str, int], b'{"a": 1}', {"a": 1}),
    "a list": (list, b"[1]", [1]),
    "a list of models": (list[Order], b'[{"id": "a"}]', [Order("a")]),
    "a dataclass": (Order, b'{"id": "a", "amount": 2}', Order("a", 2.0)),
    "a model": (Account, b'{"name": "x", "age": 3}', Account(name="x", age=3)),
    "a number": (int, b"7", 7),
    "one of two": (Order | Account, b'{"name": "x", "age": 3}', Account(name="x", age=3)),
    "an annotated one": (Annotated[int, Field(gt=3)], b"7", 7),
    "an annotated one that cannot be hashed": (Annotated[int, {"unit": "s"}], b"7", 7),
    "perhaps nothing": (Order | None, b'{"id": "a"}', Order("a")),
    "nothing": (Order | None, None, None),
    "nothing, the old way": (Optional[str], None, None),  # noqa: UP045  users write it
    "anything": (Any, b"x", b"x"),
    "no annotation": (None, None, None),
    "bytes or nothing": (bytes | None, None, None),
}


@pytest.mark.parametrize(("annotation", "value", "payload"), READ.values(), ids=READ.keys())
def test_a_value_is_read_as_its_function_says(annotation, value, payload):
    assert decoded(annotation, value) == payload


UNREAD = {
    "no value for bytes": (bytes, None, "no value"),
    "no value for a model": (Account, None, "Account"),
    "no text": (str, b"ab\xff", "byte 2"),
    "no JSON": (dict, b"{" + NOBODYS_BUSINESS.encode(), "no JSON"),
    "a list for an object": (dict, b'["%s"]' % NOBODYS_BUSINESS.encode(), "a JSON list"),
    "an object for a list": (list, b'{"a": "%s"}' % NOBODYS_BUSINESS.encode(), "a JSON dict"),
    "text for a number": (
        Account,
        b'{"name": "x", "age": "%s"}' % NOBODYS_BUSINESS.encode(),
        "age",
    ),
    "a missing field": (Order, b'{"amount": 1}', "id"),
    "a choice that is none": (
        Account,
        b'{"name": "x", "age": 1, "kind": "%s"}' % NOBODYS_BUSINESS.encode(),
        "kind",
    ),
    "a value that its author refuses": (
        Account,
        b'{"name": "%s", "age": 1}' % (NOBODYS_BUSINESS.encode() * 3),
        "40 characters",
    ),
    "no JSON for a model": (Account, NOBODYS_BUSINESS.encode(), "JSON"),
    "no UTF-8 for a model": (Account, b'{"name": "\xff"}', "Account"),
    "nothing nested without end": (Account, b"[" * 100_000, "Account"),
    "an object nested without end": (dict, b'{"a":' * 100_000, "JSON"),
    "an empty value": (Order, b"", "Order"),
}


@pytest.mark.parametrize(("annotation", "value", "said"), UNREAD.values(), ids=UNREAD.keys())
def test_what_does_not_fit_is_undecodable_and_its_values_are_not_told(annotation, value, said):
    with pytest.raises(Undecodable) as refused:
        decoded(annotation, value)
    sentence = str(refused.value)
    assert said in sentence
    assert NOBODYS_BUSINESS not in sentence
    assert len(sentence) < 400
    assert refused.value.__cause__ is None or NOBODYS_BUSINESS not in str(refused.value.__cause__)


def test_of_many_mistakes_the_first_are_told_and_the_others_counted():
    with pytest.raises(Undecodable, match="and 2 more"):
        decoded(list[int], b'["a", "b", "c", "d", "e"]')


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_undecodable_and_nothing_else(value):
    for annotation in (str, dict, list, Order, Account, int, Order | None):
        with suppress(Undecodable):
            decoded(annotation, value)


WRITTEN = {
    "bytes": (b"\xff", b"\xff"),
    "other bytes": (bytearray(b"a"), b"a"),
    "a view": (memoryview(b"a"), b"a"),
    "nothing": (None, None),
    "text": ("größe", "größe".encode()),
    "a number": (7, b"7"),
    "an object": ({"a": [1, None]}, b'{"a":[1,null]}'),
    "an object of numbers": ({1: 2}, b'{"1":2}'),
    "a list": ([1, "a"], b'[1,"a"]'),
    "a dataclass": (Order("a"), b'{"id":"a","amount":1.0}'),
    "a model": (Account(name="x", age=3), b'{"name":"x","age":3,"kind":"free"}'),
    "a time": ({"at": datetime(2024, 1, 2, tzinfo=UTC)}, b'{"at":"2024-01-02T00:00:00+00:00"}'),
}


@pytest.mark.parametrize(("value", "written"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_value_is_written_as_a_record_carries_it(value, written):
    assert encode(value) == written


@pytest.mark.parametrize("value", [object(), {"price": Decimal(1)}, {1, 2}, "caf\udce9"])
def test_what_no_record_can_carry_is_refused_with_a_sentence(value):
    with pytest.raises(InvalidRequest, match="cannot be written"):
        encode(value)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text().filter(lambda text: text.isprintable()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_what_json_can_hold_comes_back_as_it_was(value):
    written = encode([value])
    assert written is not None
    assert orjson.loads(written) == [value]


def test_rows_are_mappings_models_and_dataclasses():
    assert row_values({"a": 1}) == {"a": 1}
    assert row_values(Order("a")) == {"id": "a", "amount": 1.0}
    assert row_values(Account(name="x", age=3)) == {"name": "x", "age": 3, "kind": "free"}


@pytest.mark.parametrize("row", [None, 7, "text", [1], Order])
def test_what_is_no_row_is_refused_with_what_to_return(row):
    with pytest.raises(InvalidRequest, match=r"Skip\(reason\)"):
        row_values(row)


def test_columns_are_the_fields_with_their_kinds():
    assert columns_of(Order) == {"id": str, "amount": float}
    assert columns_of(Order | None) == {"id": str, "amount": float}
    assert columns_of(Account) == {"name": str, "age": int, "kind": object}
    assert columns_of(dict) is None
    assert columns_of(None) is None
