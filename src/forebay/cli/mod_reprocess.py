"""forebay mod reprocess-dlq: dead letters of the mod's file once more through a callable."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from forebay.cli.command import DONE, FOUND_A_PROBLEM, INTERRUPTED, Command
from forebay.cli.dlq_progress import LongWork
from forebay.cli.errors import WrongUse
from forebay.cli.mod_calling import CALLED, DryRun, Pace, Rate, attempt_with, tell_failures
from forebay.cli.output import print_object, remark, say
from forebay.mods.kafka_consumer.calls import Attempt
from forebay.mods.kafka_consumer.dlq_file import DlqFile
from forebay.mods.kafka_consumer.reprocess import Plan, Reprocessing, Tally, plan_of
from forebay.observability.clock import SystemClock

MAX_RETRIES = 3
PERMANENT_FAILURES = "permanent_failures.csv"


@dataclass(frozen=True)
class ReprocessDlq(Command):
    file: Annotated[Path, Argument(metavar="FILE", help="The dead-letter file of the mod.")]
    function: Annotated[str, Option("--processor", metavar="MODULE:FUNCTION", help=CALLED)]
    max_retries: Annotated[
        int,
        Option("--max-retries", metavar="N", min=0, help="What failed so often is moved away."),
    ] = MAX_RETRIES
    permanent: Annotated[
        Path | None,
        Option(
            "--permanent-failures",
            metavar="FILE",
            help=f"Where to; without it {PERMANENT_FAILURES} beside the dead letters.",
        ),
    ] = None
    rate: Rate = None
    dry_run: DryRun = False

    def run(self) -> int:
        if not self.file.is_file():
            raise WrongUse(f"There is no file {self.file}. Name the dlq_path of the mod.")
        begun = time.monotonic()
        file = DlqFile(self.file)
        permanent = self.permanent or file.path.with_name(PERMANENT_FAILURES)
        if permanent.resolve() == file.path:
            raise WrongUse("Permanent failures cannot stay in the file they are taken out of.")
        with ExitStack() as closing:
            attempt = attempt_with(self.function, closing)
            closing.enter_context(file.alone())
            snapshot = file.read()
            plan = plan_of(snapshot, self.max_retries)
            run = Reprocessing(file, snapshot, permanent, SystemClock())
            code = DONE if self.dry_run else self._carry_out(run, plan, attempt)
        report = Report(plan, run.tally, permanent, time.monotonic() - begun)
        self._tell(report, code)
        return code or (FOUND_A_PROBLEM if report.is_trouble else DONE)

    def _carry_out(self, run: Reprocessing, plan: Plan, attempt: Attempt) -> int:
        try:
            run.set_aside(plan.hopeless)
            with LongWork("dead letters tried", len(plan.tried)) as work:
                run.try_all(plan.tried, attempt, self._in_turn(work))
        except KeyboardInterrupt:
            remark("Interrupted. What was settled is stored; run it again for the rest.")
            return INTERRUPTED
        return DONE

    def _in_turn(self, work: LongWork) -> Callable[[int], None]:
        pace = Pace(self.rate)

        def before_each(done: int) -> None:
            if work.is_due:
                work.show(done)
            pace.wait()

        return before_each

    def _tell(self, report: "Report", code: int) -> None:
        tell_failures(report.tally.failures)
        for sentence in report.remarks():
            remark(sentence)
        if self.as_json:
            print_object({**report.facts(), "dry_run": self.dry_run, "interrupted": code != DONE})
        elif self.dry_run:
            say(
                f"{len(report.plan.tried):,} dead letters would be tried, "
                f"{len(report.plan.hopeless):,} would move to {report.permanent}. Nothing was done."
            )
        else:
            say(report.sentence())


@dataclass(frozen=True, slots=True)
class Report:
    plan: Plan
    tally: Tally
    permanent: Path
    seconds: float

    @property
    def is_trouble(self) -> bool:
        return bool(self.tally.failures.count or self.tally.permanent or self.plan.unreadable)

    def remarks(self) -> list[str]:
        sentences = {
            f"{self.plan.unreadable:,} rows were cut or changed; they stay as they are.": (
                self.plan.unreadable
            ),
            f"{self.plan.repeated:,} rows told of a message once more and went with it.": (
                self.plan.repeated
            ),
            f"{self.tally.moved_away:,} rows had left the file meanwhile, as by a rotation; where "
            f"they are now they stand as before.": self.tally.moved_away,
        }
        return [sentence for sentence, count in sentences.items() if count]

    def sentence(self) -> str:
        tally = self.tally
        moved = f", {tally.permanent:,} moved to {self.permanent}" if tally.permanent else ""
        return (
            f"{tally.reprocessed:,} dead letters succeeded and are gone, {tally.failures.count:,} "
            f"failed again and stay{moved}."
        )

    def facts(self) -> dict[str, object]:
        tried, hopeless = len(self.plan.tried), len(self.plan.hopeless)
        return {
            "total": tried + hopeless,
            "to_try": tried,
            "to_move": hopeless,
            "reprocessed": self.tally.reprocessed,
            "failed": self.tally.failures.count,
            "permanent": self.tally.permanent,
            "permanent_failures": str(self.permanent),
            "unreadable": self.plan.unreadable,
            "repeated": self.plan.repeated,
            "moved_away": self.tally.moved_away,
            "seconds": round(self.seconds, 3),
        }
