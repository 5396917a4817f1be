"""What the audit of any domain is asked and tells."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

Kind: TypeAlias = Literal[
    "missing_row",
    "missing_file",
    "wrong_content",
    "missing_event",
    "orphan_file",
    "doubled_row",
    "unaccounted",
    "expired_range",
]
Progress: TypeAlias = Callable[[int, int], None]

FINDINGS_TOLD_MAX = 1_000


class Problem(NamedTuple):
    """`detail` is a sentence. A link is told by its host and fingerprint: the rest is a secret."""

    kind: Kind
    detail: str
    trace_id: str | None = None
    attachment_url: str | None = None


@dataclass(slots=True)
class Problems:
    """All are counted, the first of each kind are kept."""

    counts: Counter[Kind] = field(default_factory=Counter)
    told: list[Problem] = field(default_factory=list)

    def has_room(self, kind: Kind) -> bool:
        return self.counts[kind] < FINDINGS_TOLD_MAX

    def add(self, problem: Problem) -> None:
        if self.has_room(problem.kind):
            self.told.append(problem)
        self.counts[problem.kind] += 1

    @property
    def untold(self) -> int:
        return self.counts.total() - len(self.told)


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """Times are inclusive and exclusive. Without `content` files are not read, only measured."""

    from_ms: int | None = None
    to_ms: int | None = None
    content: bool = True

    @property
    def is_bounded(self) -> bool:
        return self.from_ms is not None or self.to_ms is not None

    def holds(self, timestamp_ms: int) -> bool:
        if self.from_ms is not None and timestamp_ms < self.from_ms:
            return False
        return self.to_ms is None or timestamp_ms < self.to_ms


@dataclass(frozen=True, slots=True)
class DomainReport:
    """`events` and `attachments` by state, each in exactly one; `source` is where they came from.

    `facts` says how much was looked at.
    """

    source: str
    events: Mapping[str, int]
    attachments: Mapping[str, int]
    repeated: int
    doubled: int
    problems: Problems
    facts: Mapping[str, int]

    @property
    def is_ok(self) -> bool:
        return not self.problems.counts.total()


class DomainAudit(Protocol):
    def report(self, request: AuditRequest, progress: Progress) -> DomainReport:
        """Reads only. Blocking. `progress` is told (done, total) now and then."""
        ...
