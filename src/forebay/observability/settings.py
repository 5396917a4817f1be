from dataclasses import dataclass
from typing import Literal, TypeAlias

from forebay.observability.catalogue import Level

LogFormat: TypeAlias = Literal["console", "json", "tab"]


@dataclass(frozen=True, slots=True)
class LogSettings:
    """`level` None means what suits the program; `format` None console on a terminal, else json."""

    level: Level | None = None
    format: LogFormat | None = None
