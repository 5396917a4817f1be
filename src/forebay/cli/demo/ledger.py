"""What each process of the demo did, in files of its own outside the broker.

A line is appended before what it tells of is taken for done, so that an audit finds the truth even
of a process that was killed. The last line of such a file may be torn; it does not count.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Handled(NamedTuple):
    id: str
    partition: int
    at_ns: int


class Ledger:
    def __init__(self, file: Path) -> None:
        self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def produced(self, ids: Iterable[str]) -> None:
        self._append(f"produced {id_}\n" for id_ in ids)

    def handled(self, records: Iterable[Handled]) -> None:
        self._append(f"handled {id_} {partition} {at_ns}\n" for id_, partition, at_ns in records)

    def owns(self, partitions: Iterable[int]) -> None:
        self._append([f"owns {','.join(str(number) for number in sorted(partitions))}\n"])

    def _append(self, lines: Iterable[str]) -> None:
        content = "".join(lines).encode()
        while content:
            content = content[os.write(self._descriptor, content) :]


class LedgerReader:
    """Follows one process's file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read_bytes = 0
        self.produced: list[str] = []
        self.handled: list[Handled] = []
        self.owned: frozenset[int] = frozenset()

    def catch_up(self) -> None:
        for line in self._new_lines():
            kind, _, rest = line.partition(" ")
            if kind == "produced":
                self.produced.append(rest)
            elif kind == "handled":
                self.handled.append(_handled(rest))
            else:
                self.owned = frozenset(int(number) for number in rest.split(",") if number)

    def _new_lines(self) -> Iterator[str]:
        if not self._file.exists():
            return
        with self._file.open("rb") as source:
            source.seek(self._read_bytes)
            content = source.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        yield from whole.decode().splitlines()


def _handled(rest: str) -> Handled:
    id_, partition, at_ns = rest.split(" ")
    return Handled(id_, int(partition), int(at_ns))


@dataclass(frozen=True, slots=True)
class Audit:
    produced: int
    consumed: int
    lost: int
    repeated: int


def audit(produced: Sequence[str], handled: Sequence[Handled]) -> Audit:
    """`consumed` counts records, `repeated` how often one came again."""
    times = Counter(record.id for record in handled)
    acknowledged = set(produced)
    return Audit(
        produced=len(acknowledged),
        consumed=len(times),
        lost=len(acknowledged - times.keys()),
        repeated=times.total() - len(times),
    )


def taken_over_ms(
    orphaned: frozenset[int], killed_at_ns: int, survivor: LedgerReader
) -> float | None:
    """From the kill to the survivor's first record out of a partition that the kill orphaned."""
    times = [
        record.at_ns
        for record in survivor.handled
        if record.at_ns >= killed_at_ns and record.partition in orphaned
    ]
    return (min(times) - killed_at_ns) / 1e6 if times else None
