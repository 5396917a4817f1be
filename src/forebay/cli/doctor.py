"""forebay doctor: looks at everything a person may have to mend, and raises nothing."""

import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from forebay import bootstrap
from forebay.broker.port import Finding
from forebay.broker.settings import EmbeddedSettings
from forebay.cli.command import DONE, FOUND_A_PROBLEM, Command
from forebay.cli.errors import WrongUse
from forebay.cli.output import Table, print_object, print_table, say
from forebay.cli.positions import now_ms
from forebay.cli.session import Session
from forebay.core.errors import ForebayError
from forebay.operations.unread import unread_findings

PACKAGES = ("forebay", "apsw", "confluent-kafka")


@dataclass(frozen=True)
class Doctor(Command):
    config: Annotated[
        Path | None,
        Argument(metavar="FILE", help="Settings, as --config names them for other commands."),
    ] = None
    shows_config: Annotated[
        bool,
        Option("--config", help="Show what is not as it is by default, and who said so."),
    ] = False

    def run(self) -> int:
        if self.shows_config:
            return self._show_config()
        findings = [*_machine(), *self._broker()]
        is_well = all(finding.ok for finding in findings)
        if self.as_json:
            print_object({"ok": is_well, "items": [asdict(finding) for finding in findings]})
        else:
            for finding in findings:
                say(as_line(finding))
        return DONE if is_well else FOUND_A_PROBLEM

    def _show_config(self) -> int:
        session = self.session()
        session.tell_unused()
        rows = [(item.key, item.value, item.origin) for item in session.settings.chosen]
        facts = {"unused": list(session.settings.unused)}
        table = Table(("Key", "Value", "From"), rows, facts=facts)
        print_table(table, as_json=self.as_json, empty="Everything is as it is by default.")
        return DONE

    def _broker(self) -> Iterator[Finding]:
        try:
            session = self.session()
        except WrongUse as problem:
            yield Finding("settings", ok=False, detail=str(problem), do="Write what it says there.")
            return
        if session.settings.unused:
            yield Finding("settings", ok=True, detail=_unused(session.settings.unused))
        settings = session.settings.broker
        if isinstance(settings, EmbeddedSettings) and not settings.folder.exists():
            yield Finding("broker", ok=True, detail=_nothing_yet(settings.folder))
            return
        yield from _diagnosis(session)


def _diagnosis(session: Session) -> list[Finding]:
    try:
        with session.broker() as broker:
            return [*broker.diagnose(), *unread_findings(broker, now_ms())]
    except ForebayError as problem:
        return [_broken("broker", problem)]


def _broken(check: str, problem: Exception) -> Finding:
    """The last sentence of an error of ours says what to do."""
    detail, _, do = str(problem).rpartition(". ")
    return Finding(check, ok=False, detail=f"{detail}." if detail else do, do=do)


def _machine() -> Iterator[Finding]:
    untested = bootstrap.untested_system(sys.platform)
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    yield Finding("system", ok=True, detail=f"{system}. {untested}" if untested else system)
    yield Finding("packages", ok=True, detail=", ".join(_version(name) for name in PACKAGES))


def _version(package: str) -> str:
    return f"{package} {metadata.version(package)}"


def _unused(names: tuple[str, ...]) -> str:
    return f"known, but not used by this version: {', '.join(names)}"


def _nothing_yet(folder: Path) -> str:
    return f"there is no embedded broker in {folder} yet; the first use creates it"


def as_line(finding: Finding) -> str:
    mark = "✓" if finding.ok else "✗"
    line = f"{mark} {finding.check}: {finding.detail}"
    return f"{line}\n    {finding.do}" if finding.do and not finding.ok else line


def add_doctor_command(app: Typer) -> None:
    app.command(
        "doctor",
        help="Check the machine, the settings and the broker.\n\n"
        "forebay doctor --broker kafka://host:9092\n\n"
        "With --config only the settings: every one that is not the default, and where it came "
        "from.",
    )(Doctor)
