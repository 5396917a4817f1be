from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import pytest

from forebay.core.errors import InvalidRequest
from forebay.core.records import Record
from forebay.engine.functions import inspect_function

RECORD = Record(b'{"id": "a1"}', b"k", [], "orders", 0, 7, 1_000)


@dataclass
class Order:
    id: str


def plain(order: Order) -> Order:
    return order


def bare(value):
    return value


def with_record(record):
    return record


def with_context(order: Order, context):
    return context


def with_context_if_given(order: Order, context=None):
    return context


def with_a_default_of_its_own(order: Order, currency: str = "EUR"):
    return currency


async def waits(order: Order) -> None:
    return None


class Handler:
    def __call__(self, order: Order) -> None:
        return None

    def method(self, order: Order, context) -> None:
        return None


class WaitingHandler:
    async def __call__(self, order: Order) -> None:
        return None


def logged(function):
    @wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


def positional_only(order: Order, context, /):
    return context


def of_a_client(order: Order, context, client: Any) -> None:
    return None


async def waits_for_a_client(order: Order, *, client: Any) -> None:
    return None


WANTS = {
    "a payload": (plain, Order("a1"), False, False),
    "a payload of no kind": (bare, RECORD.value, False, False),
    "a record by its name": (with_record, RECORD, False, False),
    "a payload and the context": (with_context, Order("a1"), True, False),
    "the context, positional only": (positional_only, Order("a1"), True, False),
    "the context where there is one": (with_context_if_given, Order("a1"), True, False),
    "a default of its own": (with_a_default_of_its_own, Order("a1"), False, False),
    "to wait": (waits, Order("a1"), False, True),
    "to be an object": (Handler(), Order("a1"), False, False),
    "to be an object that waits": (WaitingHandler(), Order("a1"), False, True),
    "to be a method": (Handler().method, Order("a1"), True, False),
    "to be decorated": (logged(with_context), Order("a1"), True, False),
    "to be partial": (partial(of_a_client, client=1), Order("a1"), True, False),
    "to be partial and wait": (partial(waits_for_a_client, client=1), Order("a1"), False, True),
}


@pytest.mark.parametrize(
    ("call", "payload", "wants_context", "is_async"), WANTS.values(), ids=WANTS.keys()
)
def test_a_function_is_given_what_its_signature_says(call, payload, wants_context, is_async):
    function = inspect_function(call)
    assert function.decode(RECORD) == payload
    assert (function.wants_context, function.is_async) == (wants_context, is_async)


def test_what_it_returns_is_told_and_nothing_where_it_does_not_say():
    assert inspect_function(plain).returns is Order
    assert inspect_function(bare).returns is None


def test_what_python_cannot_look_into_is_refused():
    with pytest.raises(InvalidRequest, match="Wrap it"):
        inspect_function(7)


def test_many_arguments_are_nobodys_to_give():
    def takes_any(*values):
        return None

    with pytest.raises(InvalidRequest, match="payload"):
        inspect_function(takes_any)
