"""Where a table is, and what opens the store around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

StorageOptions = Callable[[], Mapping[str, str]]


def from_environment() -> Mapping[str, str]:
    """The client reads the variables of its store by itself."""
    return {}


@dataclass(frozen=True, slots=True)
class TableLocation:
    """`uri` is a folder, or an address such as abfss://container@account.dfs.core.windows.net/path.

    Options are asked for at every opening, so that a renewed credential is used.
    """

    uri: str
    options: StorageOptions = from_environment

    @property
    def folder(self) -> Path | None:
        """Of a table on this machine."""
        if self.uri.startswith("file://"):
            return Path(self.uri.removeprefix("file://"))
        return None if "://" in self.uri else Path(self.uri).absolute()

    @property
    def place(self) -> str:
        """As the client takes it."""
        return self.uri if self.folder is None else str(self.folder)

    def __str__(self) -> str:
        return self.uri
