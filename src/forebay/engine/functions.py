"""What a user's function wants and how it is called, read from its signature once."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

from forebay.core.errors import InvalidRequest
from forebay.core.records import Record
from forebay.engine.payloads import Decode, decoder_for

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Function:
    """`returns` is its annotation, None without one."""

    call: Callable[..., Any]
    name: str
    is_async: bool
    decode: Decode
    wants_context: bool
    returns: object


def inspect_function(call: Callable[..., Any]) -> Function:
    """Raises InvalidRequest for what could never be called with a record."""
    name = getattr(call, "__name__", type(call).__name__)
    parameters = _parameters(call, name)
    required = [p for p in parameters if p.default is inspect.Parameter.empty]
    if not parameters or len(required) > 2:
        raise InvalidRequest(
            f"{name} takes {len(required)} required parameters; a stage's function takes the "
            f"payload, and the context as a second one if it wants it."
        )
    hints = _hints(call, name)
    first = parameters[0]
    annotation = hints.get(first.name)
    if annotation is None and first.name == "record":
        annotation = Record
    return Function(
        call=call,
        name=name,
        is_async=inspect.iscoroutinefunction(_routine(call)),
        decode=decoder_for(annotation),
        wants_context=len(required) > 1 or [p.name for p in parameters[1:2]] == ["context"],
        returns=hints.get("return"),
    )


def _parameters(call: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError) as problem:
        raise InvalidRequest(
            f"{name} cannot be used as a stage's function: {problem}. Wrap it in a function with "
            f"a parameter for the payload."
        ) from problem
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise InvalidRequest(f"{name} yields; a stage's function returns one outcome instead.")
    keywords = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        and parameter.default is inspect.Parameter.empty
    ]
    if keywords:
        raise InvalidRequest(f"{name} needs the keyword {keywords[0]}, which nobody gives it.")
    return [p for p in signature.parameters.values() if p.kind in _POSITIONAL]


def _routine(call: Any) -> Any:
    """Where its annotations are, and whether it waits."""
    while isinstance(call, partial):
        call = call.func
    return call if inspect.isroutine(call) else type(call).__call__


def _hints(call: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(_routine(call))
    except NameError as problem:
        raise InvalidRequest(
            f"The annotations of {name} name something that is not at module level: {problem}. "
            f"Move it there."
        ) from problem
    except TypeError:
        return {}
