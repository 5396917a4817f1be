"""The audit of what the demo left behind."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from forebay.bootstrap import open_database
from forebay.bootstrap.audits import open_xact_audit
from forebay.cli.demo.opening import Opened
from forebay.cli.positions import now_ms
from forebay.observability.catalogue import silent
from forebay.operations.domain_audit import AuditRequest, DomainReport

BAR_LENGTH = 20


def prove(things: Opened, tell: Callable[[Sequence[str]], None]) -> DomainReport:
    """`tell` is given how far it is, as lines."""

    def show(done: int, total: int) -> None:
        tell([progress_line(done, total)])

    settings = things.settings
    with ExitStack() as closing:
        state = None
        if settings.state_file.exists():
            state = open_database(settings.state_file)
            closing.callback(state.close)
        audit = closing.enter_context(
            open_xact_audit(settings, silent, things.broker, state, now_ms=now_ms())
        )
        return audit.report(AuditRequest(), show)


def progress_line(done: int, total: int) -> str:
    share = min(1.0, done / total) if total else 0.0
    filled = round(share * BAR_LENGTH)
    return f" audit    {'█' * filled}{'░' * (BAR_LENGTH - filled)} {done:,} of {total:,} looked at"
