import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def eventually(
    attempt: Callable[[], Value], *, within_seconds: float = 10.0, every_seconds: float = 0.01
) -> Value:
    """Repeat until the result is truthy; an assertion that fails counts as not yet."""
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            value = attempt()
        except AssertionError:
            if time.monotonic() >= deadline:
                raise
        else:
            if value:
                return value
            if time.monotonic() >= deadline:
                raise AssertionError(f"not true within {within_seconds:g} s; last: {value!r}")
        time.sleep(every_seconds)
