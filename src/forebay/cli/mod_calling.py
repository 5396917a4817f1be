"""What the tools of a mod have in common: a callable that is named, and how fast it is called."""

import time
from contextlib import ExitStack
from typing import Annotated

from typer import Option

from forebay.cli.errors import WrongUse
from forebay.cli.output import remark
from forebay.core.buckets import TokenBucket
from forebay.core.errors import InvalidRequest
from forebay.mods.kafka_consumer.calls import Attempt, Failures, calls_of
from forebay.mods.kafka_consumer.processing import processor_of

CALLED = "Called with each value, as the mod calls it; looked for in this folder first."

Rate = Annotated[
    float | None,
    Option("--rate", metavar="N", min=0.01, help="Records a second; else as fast as it goes."),
]
DryRun = Annotated[bool, Option("--dry-run", help="Say what would happen; do nothing.")]


class Pace:
    """Evenly from the first on: what comes late is not caught up in a burst."""

    def __init__(self, per_second: float | None) -> None:
        self._bucket = None if per_second is None else TokenBucket(per_second, burst=1)

    def wait(self) -> None:
        while self._bucket is not None and (seconds := self._bucket.take(time.monotonic())):
            time.sleep(seconds)


def attempt_with(reference: str, closing: ExitStack) -> Attempt:
    try:
        processor = processor_of(reference)
    except InvalidRequest as problem:
        raise WrongUse(str(problem)) from problem
    return closing.enter_context(calls_of(processor))


def tell_failures(failures: Failures) -> None:
    for sentence in failures.told:
        remark(f"forebay: {sentence}")
    if failures.count > len(failures.told):
        remark(f"forebay: … and {failures.count - len(failures.told):,} more.")
