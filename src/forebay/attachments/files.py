"""An attachment on its way: a link, then a file in the cache, then a file at its destination."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Link:
    """`context` is what the domain needs to ask for a new link; `refreshes` how often it did."""

    url: str
    refreshes: int = 0
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CachedFile:
    path: Path
    size: int
    sha256: str
    content_type: str | None = None
