"""What must hold when the faults are over, from ledgers and the log alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torture.ledger import Entry


@dataclass
class Verdict:
    acked: int = 0
    delivered: int = 0
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    violations: list[str] = field(default_factory=list)


def judge(
    entries: Iterable[Entry],
    log: Mapping[tuple[int, int], int | None],
    committed: Mapping[int, int],
) -> Verdict:
    """`log` is (partition, offset) → number, None where the content is damaged."""
    by_kind: dict[str, list[Entry]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.at):
        by_kind[entry.kind].append(entry)
    verdict = Verdict()
    _judge_log(log, verdict)
    _judge_acks(by_kind["a"], log, verdict)
    _judge_deliveries(by_kind["a"], by_kind["d"], log, verdict)
    _judge_commits(by_kind["d"], by_kind["c"], log, verdict)
    ends = {partition: offset + 1 for partition, offset in sorted(log)}
    for partition, offset in committed.items():
        if offset > ends.get(partition, 0):
            verdict.violations.append(f"partition {partition} is committed beyond its end")
    return verdict


def _judge_log(log: Mapping[tuple[int, int], int | None], verdict: Verdict) -> None:
    seen: Counter[int] = Counter()
    last: dict[tuple[int, int], int] = {}
    for (partition, offset), number in sorted(log.items()):
        if number is None:
            verdict.violations.append(f"damaged content at {partition}/{offset}")
            continue
        seen[number] += 1
        sender = (partition, number >> 32)
        if last.get(sender, -1) >= number:
            verdict.violations.append(f"order is broken at {partition}/{offset}")
        last[sender] = number
    verdict.doubled = sum(count - 1 for count in seen.values())


def _judge_acks(
    acks: list[Entry], log: Mapping[tuple[int, int], int | None], verdict: Verdict
) -> None:
    verdict.acked = len(acks)
    for ack in acks:
        found = log.get((ack.partition, ack.offset), -1)
        if found == -1:
            verdict.lost += 1
        elif found != ack.number:
            verdict.violations.append(f"another record is at {ack.partition}/{ack.offset}")


def _judge_deliveries(
    acks: list[Entry],
    deliveries: list[Entry],
    log: Mapping[tuple[int, int], int | None],
    verdict: Verdict,
) -> None:
    verdict.delivered = len(deliveries)
    places = {(entry.partition, entry.offset) for entry in deliveries}
    verdict.repeated = len(deliveries) - len(places)
    verdict.lost += sum((ack.partition, ack.offset) not in places for ack in acks)
    for entry in deliveries:
        if log.get((entry.partition, entry.offset), -1) != entry.number:
            verdict.violations.append(
                f"{entry.partition}/{entry.offset} was delivered with other content"
            )


def _judge_commits(
    deliveries: list[Entry],
    commits: list[Entry],
    log: Mapping[tuple[int, int], int | None],
    verdict: Verdict,
) -> None:
    """No commit may be ahead of what somebody had been given before it."""
    first_seen: dict[tuple[int, int], float] = {}
    for entry in deliveries:
        first_seen.setdefault((entry.partition, entry.offset), entry.at)
    all_seen_at: dict[tuple[int, int], float] = {}
    latest: dict[int, float] = defaultdict(float)
    for place in sorted(log):
        latest[place[0]] = max(latest[place[0]], first_seen.get(place, float("inf")))
        all_seen_at[place] = latest[place[0]]
    for entry in commits:
        # A commit is the offset after a delivered one.
        seen_at = all_seen_at.get((entry.partition, entry.offset - 1), float("inf"))
        if seen_at > entry.at:
            verdict.violations.append(f"{entry.partition} was committed ahead, to {entry.offset}")
