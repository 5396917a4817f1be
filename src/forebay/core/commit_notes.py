"""What a stage writes beside a committed offset, for whoever reads the group's positions."""

import re
from dataclasses import dataclass

_WRITTEN = re.compile(r"forebay above=(\d{1,20}) partitions=(\d{1,20}) since=(\d{1,20})\Z")


@dataclass(frozen=True, slots=True)
class CommitNote:
    """`above`: records resolved above the offset. `partitions` and `since_ms`: how many the topic
    had, and when, as the group began to read it.
    """

    above: int = 0
    partitions: int = 0
    since_ms: int = 0

    def written(self) -> str:
        return f"forebay above={self.above} partitions={self.partitions} since={self.since_ms}"


def read_note(metadata: str) -> CommitNote | None:
    """None where another client committed."""
    found = _WRITTEN.match(metadata)
    if found is None:
        return None
    above, partitions, since_ms = (int(number) for number in found.groups())
    return CommitNote(above, partitions, since_ms)
