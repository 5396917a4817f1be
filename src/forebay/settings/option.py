"""One thing that a person may decide."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from forebay.settings.kinds import Kind

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Option(Generic[Value]):
    """`otherwise` says what holds without it where the default is not a value of its own."""

    key: str
    kind: Kind[Value]
    meaning: str
    default: Value
    variables: tuple[str, ...] = ()
    unit: str = ""
    flag: str = ""
    otherwise: str = ""
    example: str = ""

    @property
    def ways(self) -> str:
        """Where a person may write it."""
        return f"{self.key} ({', '.join(self.variables)})" if self.variables else self.key
