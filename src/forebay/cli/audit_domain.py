"""What a person or a script sees of the audit of a domain."""

from datetime import datetime, timedelta
from typing import Self

from forebay.cli.dlq_progress import LongWork
from forebay.cli.output import Table, print_table, remark, say
from forebay.cli.times import iso, time_ms
from forebay.operations.domain_audit import AuditRequest, DomainReport

SENTENCES_MAX = 50


class AuditProgress:
    """Nothing is shown of an audit that ends within a second."""

    def __init__(self) -> None:
        self._work: LongWork | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._work is None:
            self._work = LongWork("records, rows and files", total)
        if self._work.is_due:
            self._work.show(done)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._work is not None:
            self._work.close()


def day_or_time_ms(text: str | None, now_ms: int) -> int | None:
    """`yesterday` and `today` begin at midnight, as this machine has it."""
    if text is None:
        return None
    days_ago = {"today": 0, "yesterday": 1}.get(text.strip().lower())
    if days_ago is None:
        return time_ms(text, now_ms)
    today = datetime.fromtimestamp(now_ms / 1000).astimezone()
    midnight = (today - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
    return round(midnight.timestamp() * 1000)


def as_object(
    name: str, request: AuditRequest, report: DomainReport, seconds: float
) -> dict[str, object]:
    problems = report.problems
    return {
        "ok": report.is_ok,
        "source": report.source,
        "from": None if request.from_ms is None else iso(request.from_ms),
        "to": None if request.to_ms is None else iso(request.to_ms),
        "events": sum(report.events.values()),
        "attachments": dict(report.attachments),
        "findings": [problem._asdict() for problem in problems.told],
        "seconds": round(seconds, 3),
        "domain": name,
        "content": request.content,
        "events_by_state": dict(report.events),
        "attachments_total": sum(report.attachments.values()),
        "repeated": report.repeated,
        "doubled": report.doubled,
        "findings_by_kind": dict(problems.counts),
        "findings_untold": problems.untold,
        **report.facts,
    }


def show_report(request: AuditRequest, report: DomainReport, seconds: float) -> None:
    rows = [
        (what, state.replace("_", " "), count)
        for what, states in (("events", report.events), ("attachments", report.attachments))
        for state, count in states.items()
    ]
    print_table(Table(("of", "state", "count"), rows), as_json=False, empty="")
    say(_scope(request, report))
    _show_problems(report)
    total, events = sum(report.attachments.values()), sum(report.events.values())
    if report.is_ok:
        say(
            f"✓ {events:,} events and {total:,} attachments, every one accounted for; unaccounted: "
            f"none ({seconds:.1f} s)"
        )
    else:
        lost = report.attachments["lost"] + report.events["lost"]
        say(f"✗ {report.problems.counts.total():,} findings, lost {lost:,} ({seconds:.1f} s)")


def _scope(request: AuditRequest, report: DomainReport) -> str:
    facts = report.facts
    hashed, measured = facts["files_hashed"], facts["files_without_hash"]
    read = f"{hashed:,} by their hash" if request.content else "by their size alone (--no-content)"
    older = f", {measured:,} rows have no hash: size alone" if measured else ""
    return (
        f"source {report.source} · repeats {report.repeated:,} · doubled {report.doubled:,} · "
        f"{facts['files_checked']:,} files checked, {read}{older}"
    )


def _show_problems(report: DomainReport) -> None:
    told = report.problems.told[:SENTENCES_MAX]
    for problem in told:
        say(
            f"✗ {problem.detail}"
            + (f" [{problem.attachment_url}]" if problem.attachment_url else "")
        )
    more = report.problems.counts.total() - len(told)
    if more:
        remark(f"and {more:,} more; --json tells the first thousand of each kind")
