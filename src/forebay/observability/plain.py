"""Whatever an event carries, as something every format can write."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeGuard

_INTEGER_MAX = 2**63 - 1
_ITEMS_MAX = 100


def plain(value: object) -> object:
    match value:
        case None | bool() | float():
            return value
        case int():
            return value if abs(value) <= _INTEGER_MAX else str(value)
        case Mapping():
            return {_text(name): plain(item) for name, item in value.items()}
        case _ if _is_collection(value):
            return _items(value)
    return _text(value)


def spoken(value: object) -> str:
    """How a sentence says it."""
    if isinstance(value, list):
        return ", ".join(spoken(item) for item in value) or "none"
    return str(value)


def _is_collection(value: object) -> TypeGuard[Collection[object]]:
    """A named tuple has a text of its own; other tuples, lists and sets are many values."""
    return isinstance(value, list | AbstractSet | tuple) and not hasattr(value, "_fields")


def _items(values: Collection[object]) -> list[object]:
    ordered = sorted(values, key=str) if isinstance(values, AbstractSet) else list(values)
    return [plain(value) for value in ordered[:_ITEMS_MAX]]


def _text(value: object) -> str:
    """Names of files may hold half characters, which no encoder takes."""
    return str(value).encode("utf-8", "backslashreplace").decode()
