"""What must hold when the faults are over: nothing without an outcome, nothing nobody asked for."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from torture.engine_worker import DAMAGED, DELAY_SECONDS, REJECTED, RETRIED, key_of, kind_of
from torture.ledger import Entry

CLOCK_SECONDS = 0.01  # ledgers are written by one clock, due times by another
TOLD_MAX = 20


@dataclass(frozen=True)
class Hurt:
    """What could come again because of one fault: lines of its process that nobody committed.

    `committed` was read before, `until` is when the process had noticed; process 0 is nobody.
    Retries that were read and not committed come again wherever a partition moves.
    """

    process: int
    committed: Mapping[int, int]
    until: float
    retries_read: int

    def may_read_again(self, lines: Iterable[Entry]) -> int:
        return sum(
            line.at <= self.until and line.offset >= self.committed.get(line.partition, 0)
            for line in lines
        )


@dataclass(frozen=True)
class Stored:
    """What the topics hold: numbers as producers sent them, and dead letters."""

    sent: Counter[int]
    letters: list[tuple[int, str]]


@dataclass
class Verdict:
    acked: int = 0
    delivered: int = 0
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    repeated_at_most: int = 0
    unasked_dead_letters: int = 0
    violations: list[str] = field(default_factory=list)


def judge(entries: Iterable[Entry], stored: Stored, hurts: Collection[Hurt]) -> Verdict:
    lines: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.at):
        lines[entry.kind].append(entry)
    verdict = Verdict(acked=len(lines["a"]))
    _judge_outcomes(lines, stored, verdict)
    _judge_letters(lines, stored, verdict)
    _judge_delays(lines, verdict)
    _judge_order(lines["h"], verdict)
    _judge_repeats(lines, hurts, verdict)
    return verdict


def _judge_outcomes(lines: Mapping[str, list[Entry]], stored: Stored, verdict: Verdict) -> None:
    acked = {line.number for line in lines["a"]}
    handled = {line.number for line in lines["h"]}
    buried = {number for number, _ in stored.letters}
    verdict.doubled = sum(count - 1 for count in stored.sent.values())
    for number in acked:
        if stored.sent[number] == 0:
            verdict.violations.append(f"record {number:x} was acknowledged and is not in the log")
        is_to_be_rejected = kind_of(number) in REJECTED
        if number not in (buried if is_to_be_rejected else handled):
            verdict.lost += 1
            verdict.violations.append(f"record {number:x} has no outcome")
    if DAMAGED in handled:
        verdict.violations.append("a handler was given damaged content")


def _judge_letters(lines: Mapping[str, list[Entry]], stored: Stored, verdict: Verdict) -> None:
    asked = {line.number for line in lines["x"]}
    for number, category in stored.letters:
        if number not in asked or category != "permanent":
            verdict.unasked_dead_letters += 1
            verdict.violations.append(
                f"nobody asked for the dead letter of {number:x} ({category})"
            )


def _judge_delays(lines: Mapping[str, list[Entry]], verdict: Verdict) -> None:
    asked_at: dict[int, float] = {}
    for line in lines["r"]:
        asked_at.setdefault(line.number, line.at)
    for line in lines["h"]:
        if kind_of(line.number) not in RETRIED or line.number == DAMAGED:
            continue
        asked = asked_at.get(line.number)
        if asked is None:
            verdict.violations.append(
                f"record {line.number:x} came as a retry that nobody asked for"
            )
        elif line.at < asked + DELAY_SECONDS - CLOCK_SECONDS:
            verdict.violations.append(
                f"record {line.number:x} came back {line.at - asked:.3f} s later"
            )


def _judge_order(handled: list[Entry], verdict: Verdict) -> None:
    """Per key the first handlings follow the log, whoever did them; retries leave the order."""
    seen: set[int] = set()
    last: dict[bytes, int] = {}
    for line in handled:
        number = line.number
        if number in seen or number == DAMAGED or kind_of(number) in RETRIED:
            continue
        seen.add(number)
        key = key_of(number)
        if last.get(key, -1) > number:
            verdict.violations.append(
                f"record {number:x} was handled after {last[key]:x} of its key"
            )
        last[key] = number


def _judge_repeats(
    lines: Mapping[str, list[Entry]], hurts: Collection[Hurt], verdict: Verdict
) -> None:
    """A record is read again, or a retry comes back twice: from another offset."""
    told = [line for kind in ("h", "r", "x") for line in lines[kind]]
    reads = {(line.kind, line.number, line.offset) for line in told}
    numbers = {(kind, number) for kind, number, _ in reads}
    verdict.delivered, verdict.repeated = len(told), len(told) - len(numbers)
    by_process: dict[int, list[Entry]] = defaultdict(list)
    for line in told:
        by_process[line.process].append(line)
    read_again = len(told) - len(reads)
    may_read_again = sum(hurt.may_read_again(by_process[hurt.process]) for hurt in hurts)
    back_twice = len(reads) - len(numbers)
    # A retry that was asked for twice comes back twice.
    may_come_twice = read_again + sum(hurt.retries_read for hurt in hurts)
    verdict.repeated_at_most = may_read_again + may_come_twice
    if read_again > may_read_again:
        verdict.violations.append(
            f"{read_again} were read again, the faults explain {may_read_again}"
        )
    if back_twice > may_come_twice:
        verdict.violations.append(
            f"{back_twice} came back twice, the faults explain {may_come_twice}"
        )
