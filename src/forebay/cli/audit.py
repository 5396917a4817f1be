"""forebay audit: is every record of a pipeline accounted for?"""

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Annotated

from typer import Option, Typer

from forebay import bootstrap
from forebay.bootstrap.audits import open_xact_audit
from forebay.cli.audit_domain import AuditProgress, as_object, day_or_time_ms, show_report
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command
from forebay.cli.errors import WrongUse
from forebay.cli.loading import load_pipeline
from forebay.cli.output import Table, print_object, print_table, say
from forebay.cli.positions import now_ms
from forebay.cli.run import Reference
from forebay.cli.session import Session
from forebay.cli.times import iso
from forebay.engine.pipeline import Pipeline
from forebay.operations.audit import Account, Audit
from forebay.operations.domain_audit import AuditRequest
from forebay.state.port import Database

COUNTS = ("resolved", "waiting", "dead_lettered", "in_flight", "expired")


@dataclass(frozen=True)
class AuditPipeline(Command):
    reference: Reference
    since: Annotated[
        str | None,
        Option(
            "--from",
            metavar="TIME",
            help="Of a domain: events from then on (yesterday, 2h, 2026-11-18).",
        ),
    ] = None
    until: Annotated[
        str | None, Option("--to", metavar="TIME", help="Of a domain: events before then.")
    ] = None
    no_content: Annotated[
        bool, Option("--no-content", help="Of a domain: compare sizes of files, not their hashes.")
    ] = False

    def run(self) -> int:
        session = self.session()
        if self.reference in bootstrap.DOMAINS:
            return self._audit_domain(session)
        if self.since or self.until or self.no_content:
            raise WrongUse(
                f"--from, --to and --no-content are for {', '.join(bootstrap.DOMAINS)}: other "
                f"pipelines are audited by their offsets, all of them."
            )
        return self._audit_offsets(load_pipeline(self.reference, session), session)

    def _audit_domain(self, session: Session) -> int:
        now = now_ms()
        request = AuditRequest(
            day_or_time_ms(self.since, now), day_or_time_ms(self.until, now), not self.no_content
        )
        begun = time.monotonic()
        with ExitStack() as closing, AuditProgress() as progress:
            broker = closing.enter_context(session.broker())
            audit = closing.enter_context(
                open_xact_audit(
                    session.settings, session.emit, broker, _state(session, closing), now_ms=now
                )
            )
            report = audit.report(request, progress)
        seconds = time.monotonic() - begun
        if self.as_json:
            print_object(as_object(self.reference, request, report, seconds))
        else:
            show_report(request, report, seconds)
        return DONE if report.is_ok else FOUND_A_PROBLEM

    def _audit_offsets(self, pipeline: Pipeline, session: Session) -> int:
        begun = time.monotonic()
        with ExitStack() as closing:
            broker = closing.enter_context(session.broker())
            accounts = Audit(broker, _state(session, closing), now_ms()).accounts(pipeline)
        seconds = time.monotonic() - begun
        if self.as_json:
            print_object(_as_object(pipeline.name, accounts, seconds))
        else:
            _show(accounts)
        return FOUND_A_PROBLEM if any(account.findings for account in accounts) else DONE


def _state(session: Session, closing: ExitStack) -> Database | None:
    """None where no ledger was ever kept."""
    if not session.settings.state_file.exists():
        return None
    state = bootstrap.open_database(session.settings.state_file)
    closing.callback(state.close)
    return state


def _as_object(source: str, accounts: list[Account], seconds: float) -> dict[str, object]:
    findings = [
        {**asdict(finding), "stage": account.stage}
        for account in accounts
        for finding in account.findings
    ]
    sums = {name: sum(getattr(account, name) for account in accounts) for name in COUNTS}
    return {
        "ok": not findings,
        "source": source,
        "from": None,
        "to": None,
        "events": sum(sums.values()),
        "records": sums,
        "stages": {
            account.stage: {name: getattr(account, name) for name in COUNTS} for account in accounts
        },
        "findings": findings,
        "seconds": round(seconds, 3),
    }


def _show(accounts: list[Account]) -> None:
    rows = [
        (
            account.stage,
            *(getattr(account, name) for name in COUNTS),
            iso(account.next_due_ms) if account.next_due_ms else None,
        )
        for account in accounts
    ]
    heads = ("stage", "resolved", "waiting", "dead-lettered", "in flight", "expired", "next due")
    print_table(Table(heads, rows), as_json=False, empty="The pipeline has no stage.")
    findings = [finding for account in accounts for finding in account.findings]
    for finding in findings:
        say(f"✗ {finding.detail}")
    if not findings:
        total = sum(getattr(account, name) for account in accounts for name in COUNTS)
        say(f"✓ {total:,} records, every one accounted for")


def add_audit_command(app: Typer) -> None:
    app.command(
        "audit",
        help="Account for every record: of a domain from its events, tables and files, of another "
        "pipeline from offsets, tiers and ledger.\n\n"
        "forebay audit xact --from yesterday\n\n"
        "forebay audit orders:orders",
    )(AuditPipeline)
