"""What came of it: the audit's figures, held against what the script says must come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forebay.cli.demo.observer import Tally
from forebay.operations.domain_audit import DomainReport
from forebay.simulator.truth import Expected

FINDINGS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """`seconds` from the first event to the last that anything was done for."""

    events: int
    sent_again: int
    seconds: float
    tally: Tally
    faults: Mapping[str, int]
    peak_rss_mb: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the person asked for; `is_shifted`: an outage of theirs may have changed states."""

    scenario: str
    broker: str
    seed: int
    is_shifted: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    asked: Asked
    report: DomainReport
    expected: Expected
    measured: Measured

    @property
    def is_good(self) -> bool:
        is_as_expected = self.asked.is_shifted or not self.mismatches
        return self.report.is_ok and not self.lost and not self.report.doubled and is_as_expected

    @property
    def lost(self) -> int:
        return self.report.attachments["lost"] + self.report.events["lost"]

    @property
    def attachments(self) -> int:
        return sum(self.report.attachments.values())

    @property
    def events(self) -> int:
        return sum(self.report.events.values())

    @property
    def mismatches(self) -> Sequence[tuple[str, int, int]]:
        """(what, as the script says, as the audit found)"""
        script, found = self.expected, self.report
        pairs = [
            ("events", script.events, self.events),
            ("events with nothing to do", script.nothing_to_do, found.events["nothing_to_do"]),
            ("events dead-lettered whole", script.malformed, found.events["dead_lettered"]),
            ("attachments", script.attachments, self.attachments),
            ("stored", script.stored, found.attachments["stored"]),
            ("dead-lettered", script.dead_lettered, found.attachments["dead_lettered"]),
            ("refused", script.refused, found.attachments["refused"]),
        ]
        if not self.measured.sent_again:  # the broker may have kept what it did not acknowledge
            pairs.append(("repeats", script.repeats, found.repeated))
        return [pair for pair in pairs if pair[1] != pair[2]]

    def as_object(self) -> dict[str, object]:
        measured, tally, states = self.measured, self.measured.tally, self.report.attachments
        return {
            "scenario": self.asked.scenario,
            "broker": self.asked.broker,
            "domains": ["xact"],
            "seed": self.asked.seed,
            "sent": measured.events,
            "events": self.events,
            "attachments": self.attachments,
            "nothing_to_do": self.report.events["nothing_to_do"],
            "stored": states["stored"],
            "dead_lettered": states["dead_lettered"],
            "refused": states["refused"],
            "waiting": states["waiting"] + self.report.events["waiting"],
            "lost": self.lost,
            "doubled": self.report.doubled,
            "repeated": self.report.repeated,
            "faults": dict(measured.faults),
            "seconds": round(measured.seconds, 2),
            "events_per_second": round(measured.events / max(measured.seconds, 0.001), 1),
            "available_p50_ms": tally.available.share(50),
            "available_p95_ms": tally.available.share(95),
            "recorded_p95_ms": tally.recorded.share(95),
            "peak_rss_mb": dict(measured.peak_rss_mb),
            "expected": self.expected.as_object(),
            "as_expected": not self.mismatches,
            "audit_ok": self.report.is_ok,
        }


def audit_lines(outcome: Outcome) -> list[str]:
    """The sum, then everything that is not as it should be."""
    states = outcome.report.attachments
    checked = int(str(outcome.report.facts["files_checked"]))
    waiting = f" + {states['waiting']:,} waiting" if states["waiting"] else ""
    total = (
        f" audit    {outcome.events:,} events, {outcome.attachments:,} attachments = "
        f"{states['stored']:,} stored + {states['dead_lettered']:,} dead letters + "
        f"{states['refused']:,} refused by policy{waiting} · lost {outcome.lost:,} · "
        f"doubled {outcome.report.doubled:,} · {checked:,} files checked"
    )
    return [total, *_findings(outcome.report), *_mismatches(outcome)]


def figures_line(outcome: Outcome) -> str:
    """Between an event and its file, as those who wait for the file would say it."""
    measured = outcome.measured
    parts = [f"{measured.seconds:.1f} s"]
    p50, p95 = measured.tally.available.share(50), measured.tally.available.share(95)
    if p50 is not None and p95 is not None:
        parts.append(f"event to file: half within {_time(p50)}, 95 % within {_time(p95)}")
    parts.append(f"{sum(measured.faults.values()):,} faults hit")
    return f" figures  {' · '.join(parts)}"


def _findings(report: DomainReport) -> list[str]:
    told = report.problems.told
    lines = [f"          ✗ {problem.detail}" for problem in told[:FINDINGS_SHOWN]]
    more = report.problems.counts.total() - len(lines)
    return [*lines, f"          ✗ and {more:,} more"] if more else lines


def _mismatches(outcome: Outcome) -> list[str]:
    lines = [
        f"          ✗ {what}: {found:,}, where the script says {wanted:,}"
        for what, wanted, found in outcome.mismatches
    ]
    if lines and outcome.asked.is_shifted:
        lines.append("          (your key f made the file host fail, which may change states)")
    return lines


def _time(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"
