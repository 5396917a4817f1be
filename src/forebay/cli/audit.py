"""forebay audit: is every record of a pipeline accounted for?"""

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from typer import Typer

from forebay import bootstrap
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command
from forebay.cli.loading import load_pipeline
from forebay.cli.output import Table, print_object, print_table, say
from forebay.cli.positions import now_ms
from forebay.cli.run import Reference
from forebay.cli.times import iso
from forebay.operations.audit import Account, Audit

COUNTS = ("resolved", "waiting", "dead_lettered", "in_flight", "expired")


@dataclass(frozen=True)
class AuditPipeline(Command):
    reference: Reference

    def run(self) -> int:
        pipeline = load_pipeline(self.reference)
        session = self.session()
        begun = time.monotonic()
        with ExitStack() as closing:
            broker = closing.enter_context(session.broker())
            state = None
            if session.settings.state_file.exists():
                state = bootstrap.open_database(session.settings.state_file)
                closing.callback(state.close)
            accounts = Audit(broker, state, now_ms()).accounts(pipeline)
        seconds = time.monotonic() - begun
        if self.as_json:
            print_object(_as_object(pipeline.name, accounts, seconds))
        else:
            _show(accounts)
        return FOUND_A_PROBLEM if any(account.findings for account in accounts) else DONE


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
        help="Account for every record, from offsets, tiers and ledger.\n\n"
        "forebay audit orders:orders",
    )(AuditPipeline)
