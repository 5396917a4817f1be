"""A command is a frozen dataclass: its fields are its options, `run` gives the exit code.

Typer reads the options from the fields, so a command with many of them needs no long signature.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from typer import Option

from forebay.cli.session import Session
from forebay.settings import Flags

DONE = 0
FOUND_A_PROBLEM = 1
WRONG_USE = 2
INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Command:
    broker: Annotated[
        str | None,
        Option(
            "--broker",
            metavar="URL",
            help="embedded:DIR, kafka://host:port, kafka (a trial one) or eventhub. Without it "
            "FOREBAY_BROKER, then KAFKA_BOOTSTRAP_SERVERS, then embedded in --dir.",
        ),
    ] = None
    folder: Annotated[
        Path | None, Option("--dir", metavar="DIR", help="The data folder (./forebay-data).")
    ] = None
    as_json: Annotated[bool, Option("--json", help="One JSON object on the last line.")] = False
    log_level: Annotated[
        str | None,
        Option("--log-level", metavar="LEVEL", help="debug, info, warning, error or critical."),
    ] = None
    log_format: Annotated[
        str | None, Option("--log-format", metavar="FORMAT", help="console, json or tab.")
    ] = None

    config: Annotated[
        Path | None,
        Option(
            "--config",
            metavar="FILE",
            help="Settings. Without it FOREBAY_CONFIG, then ./forebay.yaml where there is one.",
        ),
    ] = None

    @abstractmethod
    def run(self) -> int: ...

    def session(self) -> Session:
        return Session(self.flags())

    def flags(self) -> Flags:
        return Flags(self.broker, self.folder, self.log_level, self.log_format, self.config)


@dataclass(frozen=True, kw_only=True)
class WorkingCommand(Command):
    """Runs a pipeline. Both options are for the pipelines that Forebay brings."""

    development: Annotated[
        bool,
        Option("--dev", help="Links may lead to this machine, if it is allowed. For trials."),
    ] = False
    no_tables: Annotated[bool, Option("--no-delta", help="Write no tables.")] = False

    def flags(self) -> Flags:
        return replace(super().flags(), development=self.development, no_tables=self.no_tables)


@dataclass(frozen=True, kw_only=True)
class DestructiveCommand(Command):
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would happen; do nothing.")] = False
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False
    reason: Annotated[
        str | None, Option("--reason", metavar="TEXT", help="Why; kept in the log.")
    ] = None
