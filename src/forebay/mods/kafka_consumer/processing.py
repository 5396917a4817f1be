"""How the user's callable is called: what it takes is read from its signature once."""

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from forebay.core.errors import InvalidRequest
from forebay.core.records import Record

RECORD = "record"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class UserFunction:
    """`call` takes a record and gives what the user's callable does with it."""

    call: Callable[[Record], Any]
    name: str
    is_async: bool


def processor_of(given: object) -> UserFunction:
    """Raises InvalidRequest for what could never be called with a message."""
    user = _imported(given) if isinstance(given, str) else given
    if not callable(user):
        raise InvalidRequest(
            f"processor_callable is a {type(user).__name__}, which cannot be called; give a "
            f"function, or module:function as text."
        )
    name = getattr(user, "__name__", type(user).__name__)
    routine = _routine(user)
    if inspect.isgeneratorfunction(routine) or inspect.isasyncgenfunction(routine):
        raise InvalidRequest(
            f"processor_callable {name} yields, so calling it would run nothing of it; write a "
            f"plain or async function."
        )
    return UserFunction(_call_of(user, name), name, inspect.iscoroutinefunction(routine))


def _call_of(user: Callable[..., Any], name: str) -> Callable[[Record], Any]:
    try:
        parameters = list(inspect.signature(user).parameters.values())
    except (TypeError, ValueError):  # some built-in functions tell nothing of themselves
        parameters = []
        return lambda record: user(record[0])
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    required = [p for p in positional if p.default is inspect.Parameter.empty]
    keywords = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    _check(name, parameters, required, keywords)
    if any(parameter.name == RECORD for parameter in keywords):
        return lambda record: user(record[0], record=record)
    if positional and positional[0].name == RECORD:
        return user
    if len(required) > 1:
        return lambda record: user(record[0], record)
    if any(p.name == RECORD for p in positional):
        return lambda record: user(record[0], record=record)
    return lambda record: user(record[0])


def _check(
    name: str,
    parameters: list[inspect.Parameter],
    required: list[inspect.Parameter],
    keywords: list[inspect.Parameter],
) -> None:
    takes_any = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    takes_one = takes_any or any(p.kind in _POSITIONAL for p in parameters)
    if not takes_one or len(required) > 2:
        raise InvalidRequest(
            f"processor_callable {name} takes {len(required)} required parameters; it is called "
            f"with the value, and with the record as a second one if it wants that."
        )
    for keyword in keywords:
        if keyword.default is inspect.Parameter.empty and keyword.name != RECORD:
            raise InvalidRequest(
                f"processor_callable {name} needs the keyword {keyword.name}, which nobody gives "
                f"it; give it a default, or bind it with functools.partial."
            )


def _routine(user: Any) -> Any:
    """Whether it waits is told by the function behind partials and instances."""
    while isinstance(user, partial):
        user = user.func
    return user if inspect.isroutine(user) or inspect.isclass(user) else type(user).__call__


def _imported(reference: str) -> object:
    module_name, mark, attribute = reference.partition(":")
    if not mark or not module_name or not attribute:
        raise InvalidRequest(
            f"processor_callable is {reference!r}, which names no function; write module:function, "
            f"as orders:process."
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
        for name in attribute.split("."):
            found = getattr(found, name)
    except Exception as problem:
        raise InvalidRequest(
            f"processor_callable {reference} cannot be imported ({type(problem).__name__}: "
            f"{problem}). Mend the module, or go to the folder that holds it."
        ) from problem
    return found
