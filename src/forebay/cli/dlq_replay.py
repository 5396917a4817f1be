"""forebay dlq replay: sends dead letters back to their stage, by a plan that survives a kill."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from typer import Option

from forebay.cli.ages import rough_duration
from forebay.cli.asking import Deed, agreed, tell
from forebay.cli.command import DONE, FOUND_A_PROBLEM, DestructiveCommand
from forebay.cli.dlq_choice import Choice, Of, OptionalLetterId
from forebay.cli.dlq_pipelines import named_or_found
from forebay.cli.dlq_replaying import Replaying
from forebay.cli.dlq_state import actor, open_state
from forebay.cli.dlq_way_back import WayBack
from forebay.cli.errors import WrongUse
from forebay.cli.output import print_object, remark, say
from forebay.cli.positions import now_ms
from forebay.engine.ledger import Ledger
from forebay.engine.letters import LetterFilter
from forebay.engine.replay_book import ReplayBook
from forebay.engine.replay_plans import (
    REPLAYS_MAX,
    Draft,
    Edit,
    Plan,
    ReplayRequest,
    create_plan,
    draft_plan,
    load_plan,
    unfinished_plans,
)

_TOLD_MAX = 5


@dataclass(frozen=True)
class Replay(Choice, DestructiveCommand):
    id: OptionalLetterId = None
    rate: Annotated[
        float | None,
        Option("--rate", metavar="N", min=0.01, help="Records a second; else as fast as it goes."),
    ] = None
    value: Annotated[
        str | None,
        Option("--value", metavar="FILE|TEXT", help="Send this value instead; for one letter."),
    ] = None
    force: Annotated[
        bool, Option("--force", help=f"Also what was replayed {REPLAYS_MAX} times already.")
    ] = False
    resume: Annotated[
        str | None, Option("--resume", metavar="PLAN", help="Go on with a replay that was ended.")
    ] = None
    of: Of = None

    def run(self) -> int:
        if self.resume is None and not self.dry_run and not (self.reason or "").strip():
            raise WrongUse('A replay needs a reason: --reason "…". It is kept with the replay.')
        session = self.session()
        with ExitStack() as closing:
            database = closing.enter_context(open_state(session))
            replaying = Replaying(session, database, self.of, closing)
            if self.resume is not None:
                return self._go_on(replaying, self.resume)
            return self._begin(replaying)

    def _begin(self, replaying: Replaying) -> int:
        request = self._request(replaying.ledger)
        draft = draft_plan(replaying.database, request)
        if not draft.entries:
            return self._tell_none(replaying.ledger, draft)
        back = replaying.way_back(draft.origins)
        words = Words(back, self.rate)
        if self.dry_run:
            return self._tell_dry(words, draft)
        for sentence in (words.stay(draft), words.nowhere()):
            if sentence:
                remark(sentence)
        would = f"would send {words.records} back to {words.places}{words.speed}"
        deed = Deed("dlq.replay", self.id or self.told, would, back.count)
        if not agreed(self, deed):
            return FOUND_A_PROBLEM
        plan = create_plan(replaying.database, request)
        tell(replaying.session, self, replace(deed, target=plan.id))
        return self._carry_out(replaying, plan, back)

    def _go_on(self, replaying: Replaying, id: str) -> int:
        if self.id is not None or self.value is not None or self.wanted() != LetterFilter():
            raise WrongUse(f"Replay {id} was planned; it takes no ID, filter or value any more.")
        plan = load_plan(replaying.database, id)
        back = replaying.way_back_of(plan)
        left = len(ReplayBook(replaying.database, id).planned())
        would = f"would go on with replay {id}, {left:,} of {len(plan.entries):,} records to go"
        deed = Deed("dlq.replay", id, would, left)
        if not agreed(self, deed):
            return DONE if self.dry_run else FOUND_A_PROBLEM
        tell(replaying.session, self, deed)
        return self._carry_out(replaying, plan, back)

    def _request(self, ledger: Ledger) -> ReplayRequest:
        wanted = self.wanted_or(ledger, self.id)
        if self.id is None and self.of is not None and wanted.pipeline is None:
            pipeline = named_or_found(self.session(), self.of, "")
            wanted = replace(wanted, pipeline=pipeline.name if pipeline else None)
        return ReplayRequest(
            wanted=wanted,
            actor=actor(),
            reason=self.reason or "",
            at_ms=now_ms(),
            limit=self.limit,
            force=self.force,
            edit=None if self.value is None else Edit(_content(self.value)),
        )

    def _carry_out(self, replaying: Replaying, plan: Plan, back: WayBack) -> int:
        begun = time.monotonic()
        progress = replaying.carry_out(plan, back, self.rate)
        for id, why in ReplayBook(replaying.database, plan.id).passed_over()[:_TOLD_MAX]:
            remark(f"{id} was not sent: {why}.")
        sentence = (
            f"{progress.sent:,} of {len(plan.entries):,} records went back to "
            f"{Words(back, self.rate).places} as replay {plan.id}. Each is resolved when its "
            f"handler succeeds."
        )
        counts = {
            "plan": plan.id,
            "planned": len(plan.entries),
            "sent": progress.sent,
            "passed_over": progress.passed_over,
            "refused": progress.refused,
            "seconds": round(time.monotonic() - begun, 3),
        }
        self._tell(sentence, back, counts)
        if others := unfinished_plans(replaying.database):
            remark(f"Not at their end: {', '.join(others)}. Go on with: --resume {others[0]}")
        return FOUND_A_PROBLEM if progress.refused else DONE

    def _tell_dry(self, words: "Words", draft: Draft) -> int:
        told = (
            f"{words.records} would go back to {words.places}{words.speed}.",
            f"Oldest {rough_duration(now_ms() - (draft.oldest_ms or 0))}.",
            words.nowhere(),
            words.stay(draft),
            "Nothing was sent.",
        )
        facts = {
            "rate": self.rate,
            "seconds": words.seconds,
            "oldest_ms": draft.oldest_ms,
            "needs_force": draft.needs_force,
        }
        self._tell(" ".join(sentence for sentence in told if sentence), words.back, facts)
        return DONE

    def _tell_none(self, ledger: Ledger, draft: Draft) -> int:
        back = WayBack({}, {}, 0)
        sentence = "No open dead letter matches."
        if draft.needs_force:
            sentence = Words(back, self.rate).stay(draft)
        elif self.id is not None:
            letter = ledger.one(self.id)
            sentence = f"Dead letter {letter.id} is {letter.state}, not open."
        self._tell(f"{sentence} Nothing was sent.", back, {"needs_force": draft.needs_force})
        return DONE if self.id is None and not draft.needs_force else FOUND_A_PROBLEM

    def _tell(self, sentence: str, back: WayBack, facts: Mapping[str, object]) -> None:
        if not self.as_json:
            say(sentence)
            return
        remark(sentence)
        items = [{"topic": topic, "records": count} for topic, count in back.targets.items()]
        whole = {"items": items, "total": back.count, "nowhere": back.nowhere}
        print_object({**whole, "dry_run": self.dry_run, **facts})


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of a replay, before and after."""

    back: WayBack
    rate: float | None

    @property
    def records(self) -> str:
        return f"{self.back.count:,} record{'s' if self.back.count != 1 else ''}"

    @property
    def places(self) -> str:
        targets = self.back.targets
        if len(targets) == 1:
            return next(iter(targets))
        return ", ".join(f"{topic} ({count:,})" for topic, count in targets.items())

    @property
    def seconds(self) -> float | None:
        return None if self.rate is None else self.back.count / self.rate

    @property
    def speed(self) -> str:
        if self.rate is None or self.seconds is None:
            return " as fast as the broker takes them"
        return f" at {self.rate:g}/s (about {rough_duration(max(1.0, self.seconds) * 1000)})"

    def nowhere(self) -> str:
        count = self.back.nowhere
        return f"{count:,} more stay: no stage takes them back." if count else ""

    def stay(self, draft: Draft) -> str:
        if not draft.needs_force:
            return ""
        return (
            f"{draft.needs_force:,} more stay: they were replayed {REPLAYS_MAX} times already "
            f"(--force takes them along)."
        )


def _content(value: str) -> bytes:
    """A file of that name, else the text itself."""
    try:
        if Path(value).is_file():
            return Path(value).read_bytes()
    except (OSError, ValueError):
        pass  # too long for a name, or with a NUL: a text
    return value.encode("utf-8", "surrogateescape")
