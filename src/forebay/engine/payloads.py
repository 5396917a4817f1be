"""Values as functions want them, and values as records carry them."""

import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeAlias, Union, get_args, get_origin

import orjson

from forebay.core.errors import InvalidRequest, Rejected
from forebay.core.failures import UNDECODABLE
from forebay.core.records import Record

Decode: TypeAlias = Callable[[Record], Any]

_PROBLEMS_TOLD_MAX = 3


class Undecodable(Rejected):
    """The record can never be handed to its function; it is dead-lettered as it is."""

    category = UNDECODABLE


def decoder_for(annotation: object) -> Decode:
    """How a record becomes the argument that a function declares."""
    if annotation is Record:
        return lambda record: record
    if annotation in (None, Any, bytes | None):
        return lambda record: record.value
    wanted, may_be_null = _without_none(annotation)
    parse = _parser_for(wanted)
    name = getattr(wanted, "__name__", str(wanted))

    def decode(record: Record) -> Any:
        if record.value is not None:
            return parse(record.value)
        if may_be_null:
            return None
        raise Undecodable(f"The record has no value, where {name} is wanted.")

    return decode


def encode(value: object) -> bytes | None:
    """Bytes and text as they are, models, dataclasses, mappings and lists as JSON."""
    match value:
        case None | bytes():
            return value
        case str():
            return _written_text(value)
        case bytearray() | memoryview():
            return bytes(value)
    if (dump := getattr(value, "model_dump_json", None)) is not None:
        return str(dump()).encode()
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError) as problem:
        raise InvalidRequest(
            f"A {type(value).__name__} cannot be written into a record ({problem}); use bytes, "
            f"text, a model, a dataclass, or what JSON can hold."
        ) from problem


def _written_text(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as problem:
        raise InvalidRequest(
            f"A text cannot be written into a record: its character {problem.start} is half of "
            f"one. Write such text as bytes."
        ) from problem


def columns_of(annotation: object) -> Mapping[str, type] | None:
    """The fields of a model or dataclass with their types, None for anything else."""
    from pydantic import BaseModel  # noqa: PLC0415  heavy, and only for who declares types

    wanted, _ = _without_none(annotation)
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        fields = {name: field.annotation for name, field in wanted.model_fields.items()}
    elif isinstance(wanted, type) and is_dataclass(wanted):
        fields = _hints(wanted)
    else:
        return None
    return {name: column_type(kind) for name, kind in fields.items()}


def row_values(row: object) -> Mapping[str, Any]:
    """A row as a sink stores it."""
    if isinstance(row, Mapping):
        return row
    if (dump := getattr(row, "model_dump", None)) is not None:
        dumped: Mapping[str, Any] = dump(mode="python")
        return dumped
    if is_dataclass(row) and not isinstance(row, type):
        return {name: getattr(row, name) for name in row.__dataclass_fields__}
    raise InvalidRequest(
        f"A {type(row).__name__} is no row; return a model, a dataclass, a dict, or Skip(reason)."
    )


def _without_none(annotation: object) -> tuple[Any, bool]:
    if get_origin(annotation) in {Union, types.UnionType}:
        kinds = [kind for kind in get_args(annotation) if kind is not types.NoneType]
        if len(kinds) < len(get_args(annotation)) and len(kinds) == 1:
            return kinds[0], True
    return annotation, False


def _parser_for(wanted: Any) -> Callable[[bytes], Any]:
    if wanted is bytes:
        return lambda value: value
    if wanted is str:
        return _text
    if (
        wanted is dict
        or wanted is list
        or (get_origin(wanted) is dict and get_args(wanted) == (str, Any))
    ):
        return lambda value: _json(value, get_origin(wanted) or wanted)
    return _model_parser(wanted)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as problem:
        raise Undecodable(f"The value is no UTF-8 text (byte {problem.start}).") from problem


def _json(value: bytes, kind: type) -> Any:
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError as problem:
        raise Undecodable(f"The value is no JSON: {problem}.") from problem
    if not isinstance(parsed, kind):
        raise Undecodable(f"The value is a JSON {type(parsed).__name__}, not a {kind.__name__}.")
    return parsed


def _model_parser(wanted: Any) -> Callable[[bytes], Any]:
    from pydantic import PydanticUserError, TypeAdapter, ValidationError  # noqa: PLC0415  the same

    try:
        adapter = TypeAdapter(wanted)
    except (PydanticUserError, TypeError) as problem:
        raise InvalidRequest(
            f"A function cannot take {wanted!r}: annotate its first parameter with bytes, str, "
            f"dict, a pydantic model, a dataclass or Record."
        ) from problem
    name = getattr(wanted, "__name__", str(wanted))

    def parse(value: bytes) -> Any:
        try:
            return adapter.validate_json(value)
        except ValidationError as problem:
            told = problem.errors(include_input=False, include_url=False, include_context=False)
            raise Undecodable(_sentence(name, told)) from None

    return parse


def _sentence(name: str, problems: list[Any]) -> str:
    """Without the values: they may be nobody's business."""
    told = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'value'}: {problem['msg']}"
        for problem in problems[:_PROBLEMS_TOLD_MAX]
    ]
    more = len(problems) - len(told)
    ending = f" and {more} more" if more else ""
    return f"The value is no {name}: {'; '.join(told)}{ending}."


def _hints(wanted: type) -> dict[str, Any]:
    from typing import get_type_hints  # noqa: PLC0415  beside its only use

    return get_type_hints(wanted)


def column_type(annotation: object) -> type:
    """What its values are, None aside."""
    wanted, _ = _without_none(annotation)
    origin = get_origin(wanted) or wanted
    return origin if isinstance(origin, type) else object
