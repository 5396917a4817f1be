"""forebay dlq view: everything about one dead letter, or a test made of it."""

from dataclasses import dataclass
from typing import Annotated

from typer import Option

from forebay.cli.command import DONE, Command
from forebay.cli.dlq_as_test import test_name, test_of
from forebay.cli.dlq_choice import LetterId, Of
from forebay.cli.dlq_masking import NoMask, mask_for
from forebay.cli.dlq_page import Cover, LetterPage
from forebay.cli.dlq_pipelines import named_or_found, pipeline_of, reference_of, stage_of
from forebay.cli.dlq_state import Look, open_state, write_audit
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_object, remark, say
from forebay.engine.ledger import Ledger
from forebay.engine.letters import DeadLetter
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import RecordStage
from forebay.state.port import Database


@dataclass(frozen=True)
class ViewLetter(Command):
    id: LetterId
    of: Of = None
    reveal: Annotated[
        bool, Option("--reveal", help="Hide nothing; who looked is written into the audit trail.")
    ] = False
    as_test: Annotated[
        bool, Option("--as-test", help="Print a pytest with the whole record in it (audited, too).")
    ] = False
    reason: Annotated[
        str | None, Option("--reason", metavar="TEXT", help="Why all of it is to be seen.")
    ] = None

    def run(self) -> int:
        with open_state(self.session()) as database:
            letter = Ledger(database).one(self.id)
            if self.as_test:
                self._print_test(database, letter)
            else:
                self._print_page(database, letter)
        return DONE

    def _print_page(self, database: Database, letter: DeadLetter) -> None:
        pipeline = named_or_found(self.session(), self.of, letter.pipeline)
        cover = self._cover(database, letter, pipeline)
        story = Ledger(database).story(letter.id)
        page = LetterPage(letter, story, cover, self.of)
        if self.as_json:
            print_object({"items": [page.as_object()], "total": 1})
        else:
            say("\n".join(page.lines()))
        if pipeline is None and not self.reveal:
            remark(
                f"Which fields {letter.pipeline or 'its pipeline'} calls sensitive is not known "
                f"here, so only links and what is named as a secret was masked. Say where the "
                f"pipeline is: --of module:pipeline."
            )

    def _print_test(self, database: Database, letter: DeadLetter) -> None:
        if self.as_json:
            raise WrongUse("A test is Python, not JSON; leave --json or --as-test out.")
        stage = stage_of(letter, pipeline_of(self.session(), letter, self.of))
        self._tell(database, letter, "view as test")
        say("\n".join(test_of(letter, stage, reference_of(self.of, letter.pipeline))))
        remark(f"Save it as {test_name(letter)}.py. It holds the whole record, nothing is masked.")

    def _cover(self, database: Database, letter: DeadLetter, pipeline: Pipeline | None) -> Cover:
        if self.reveal:
            self._tell(database, letter, "reveal")
            return NoMask()
        return mask_for(letter.value, _sensitive(letter, pipeline))

    def _tell(self, database: Database, letter: DeadLetter, action: str) -> None:
        write_audit(self.session(), database, Look(action, letter.id, 1, self.reason or ""))


def _sensitive(letter: DeadLetter, pipeline: Pipeline | None) -> set[str]:
    """Of all its stages where the letter's own is gone: better one too many."""
    stages = [] if pipeline is None else pipeline.record_stages
    own = [stage for stage in stages if stage.name == letter.stage]
    return {name for stage in own or stages for name in _named(stage)}


def _named(stage: RecordStage) -> tuple[str, ...]:
    return (stage.sensitive,) if isinstance(stage.sensitive, str) else tuple(stage.sensitive)
