"""Which dead letters a command is about: the filters they all share, or one by its id."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from forebay.cli.command import Command
from forebay.cli.errors import WrongUse
from forebay.cli.positions import now_ms
from forebay.cli.times import time_ms
from forebay.engine.ledger import Ledger
from forebay.engine.letters import DeadLetter, LetterFilter

PAGE = 500


class State(StrEnum):
    OPEN = "open"
    REPLAYING = "replaying"
    RESOLVED = "resolved"
    DISCARDED = "discarded"


_ID_HELP = "Its id, a beginning of it that no other has, or its trace id."

LetterId = Annotated[str, Argument(metavar="ID", help=_ID_HELP)]
OptionalLetterId = Annotated[
    str | None, Argument(metavar="ID", help=f"{_ID_HELP} Without it the filters choose.")
]
Of = Annotated[
    str | None,
    Option(
        "--of",
        metavar="MODULE:PIPELINE",
        help="The pipeline they are of. Without it a module named as the pipeline is tried.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Choice(Command):
    pipeline: Annotated[
        str | None,
        Option(
            "--pipeline", "--domain", metavar="NAME", help="Of this pipeline, or its stage a.b."
        ),
    ] = None
    topic: Annotated[
        str | None,
        Option("--topic", metavar="TOPIC", help="From this topic, or on this dead-letter topic."),
    ] = None
    key: Annotated[str | None, Option("--key", metavar="TEXT", help="Only this key.")] = None
    since: Annotated[
        str | None, Option("--from", metavar="TIME", help="Failed since: 2h, 2026-11-18T09:00Z.")
    ] = None
    until: Annotated[str | None, Option("--to", metavar="TIME", help="Failed before.")] = None
    category: Annotated[
        str | None, Option("--category", metavar="NAME", help="transient, permanent, timeout, …")
    ] = None
    cause: Annotated[
        str | None,
        Option("--cause", metavar="FINGERPRINT", help="Or its beginning, as `stats` shows it."),
    ] = None
    text: Annotated[
        str | None, Option("--text", metavar="TEXT", help="Anywhere in reason, key or value.")
    ] = None
    state: Annotated[State | None, Option("--state", help="Where they stand.")] = None
    limit: Annotated[int | None, Option("--limit", metavar="N", min=1, help="So many at most.")] = (
        None
    )

    def wanted(self) -> LetterFilter:
        now = now_ms()
        pipeline, stage = _names(self.pipeline)
        return LetterFilter(
            pipeline=pipeline,
            stage=stage,
            topic=self.topic,
            key=None if self.key is None else self.key.encode("utf-8", "surrogateescape"),
            since_ms=time_ms(self.since, now) if self.since else None,
            until_ms=time_ms(self.until, now) if self.until else None,
            category=self.category,
            cause=self.cause.lower() if self.cause else None,
            text=self.text,
            state=None if self.state is None else self.state.value,
        )

    def wanted_or(self, ledger: Ledger, id: str | None) -> LetterFilter:
        """By the filters, or the one letter that is named."""
        wanted = self.wanted()
        if id is None:
            return wanted
        if wanted != LetterFilter():
            raise WrongUse(f"{id} names one dead letter, the filters choose many; write either.")
        return LetterFilter(ids=(ledger.one(id).id,))

    @property
    def told(self) -> str:
        """What a person reads in the audit trail."""
        given = {
            "pipeline": self.pipeline,
            "topic": self.topic,
            "key": self.key,
            "from": self.since,
            "to": self.until,
            "category": self.category,
            "cause": self.cause,
            "text": self.text,
            "state": self.state,
            "limit": self.limit,
        }
        said = [f"{name} {value}" for name, value in given.items() if value is not None]
        return ", ".join(said) or "all dead letters"


def _names(pipeline: str | None) -> tuple[str | None, str | None]:
    """No name of a pipeline or stage has a dot in it."""
    if pipeline is None:
        return None, None
    name, _, stage = pipeline.partition(".")
    return name, stage or None


def every_letter(
    ledger: Ledger, wanted: LetterFilter, limit: int | None = None
) -> Iterator[DeadLetter]:
    """The newest first, however many: no more than a page of them is held."""
    left = limit
    seen: set[str] = set()
    while left is None or left > 0:
        page = ledger.find(wanted, PAGE + len(seen)).items
        fresh = [letter for letter in page if letter.id not in seen]
        if not fresh:
            return
        yield from fresh[:left]
        left = None if left is None else left - len(fresh)
        last_ms = page[-1].failed_ms
        seen = {letter.id for letter in page if letter.failed_ms == last_ms}
        wanted = replace(wanted, until_ms=last_ms + 1)
