"""What was said about each option, by whom, and everything that is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from forebay.broker.settings import Secret
from forebay.settings.kinds import Misfit, SecretText
from forebay.settings.option import Option
from forebay.settings.options import OPTIONS
from forebay.settings.slices import Chosen
from forebay.settings.tree import Tree
from forebay.settings.unbuilt import UNUSED_VARIABLES

Value = TypeVar("Value")

FLAG, VARIABLE, FILE, NOBODY = range(4)
SHOWN_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True)
class Said:
    """`rank`: the lower one wins."""

    raw: object
    origin: str
    rank: int


@dataclass(frozen=True, slots=True)
class Sources:
    """`flags` by the key of their option."""

    flags: Mapping[str, object]
    environment: Mapping[str, str]
    tree: Tree

    def all_said(self, option: Option[Any]) -> list[Said]:
        """The one that wins first."""
        said = []
        if self.flags.get(option.key) is not None:
            said.append(Said(self.flags[option.key], option.flag, FLAG))
        said += [
            Said(text, variable, VARIABLE)
            for variable in option.variables
            if (text := self.environment.get(variable, "").strip())
        ]
        raw = self.tree.values.get(option.key)
        if raw is not None and raw != "":
            said.append(Said(raw, f"{self.tree.name}:{option.key}", FILE))
        return said

    @property
    def unused(self) -> tuple[str, ...]:
        variables = [name for name in UNUSED_VARIABLES if self.environment.get(name, "").strip()]
        return (*self.tree.unused, *variables)


class Values:
    """Goes on after a problem, so that a person mends all of them at once."""

    def __init__(self, sources: Sources) -> None:
        self.problems = list(sources.tree.problems)
        self._said: dict[str, Said] = {}
        self._values: dict[str, Any] = {}
        for option in OPTIONS:
            if said := sources.all_said(option):
                self._read(option, said)

    def get(self, option: Option[Value]) -> Value:
        value: Value = self._values.get(option.key, option.default)
        return value

    def rank(self, option: Option[Any]) -> int:
        return self._said[option.key].rank if option.key in self._said else NOBODY

    def is_said(self, option: Option[Any]) -> bool:
        return option.key in self._said

    def name(self, option: Option[Any]) -> str:
        """Where the value came from, or would best be written."""
        if option.key in self._said:
            return self._said[option.key].origin
        return option.variables[0] if option.variables else option.key

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)

    def chosen(self) -> tuple[Chosen, ...]:
        return tuple(
            Chosen(option.key, plain(self._values[option.key]), self._said[option.key].origin)
            for option in OPTIONS
            if option.key in self._values and self._values[option.key] != option.default
        )

    def _read(self, option: Option[Any], said: list[Said]) -> None:
        winner = said[0]
        self._said[option.key] = winner
        for other in said[1:]:
            if other.rank == winner.rank and other.raw != winner.raw:
                self.problem(
                    f"{winner.origin} and {other.origin} mean the same and differ; write one."
                )
        try:
            self._values[option.key] = option.kind.read(winner.raw)
        except Misfit as misfit:
            shown = "***" if isinstance(option.kind, SecretText) else shown_value(winner.raw)
            why = f", {misfit}" if str(misfit) else ""
            self.problem(f"{winner.origin} is {shown}{why}; write {option.kind.shape}.")


def plain(value: object) -> object:
    """As it may be printed: never a secret."""
    match value:
        case Secret():
            return "***"
        case Path():
            return str(value)
        case tuple():
            return [plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def shown_value(raw: object) -> str:
    """Short, and without what stands in a URL for a key or a password."""
    match raw:
        case Mapping():
            return "a section"
        case list():
            return shown_list(raw)
        case str():
            return repr(_shortened(without_credentials(raw)))
        case bool():
            return str(raw).lower()
        case _:
            return _shortened(str(raw))


def shown_list(items: list[Any]) -> str:
    if any(isinstance(item, Mapping | list) for item in items):
        return "a list of lists or sections"
    return _shortened(f"[{', '.join(str(item) for item in items)}]")


def without_credentials(text: str) -> str:
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    authority, slash, path = rest.partition("?")[0].partition("/")
    user, at, host = authority.rpartition("@")
    hidden = "…" if at and ":" in user else user
    query = "?…" if "?" in rest else ""
    return f"{scheme}://{hidden}{at}{host}{slash}{path}{query}"


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}…"
