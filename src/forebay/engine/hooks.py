"""What a stage's author wants to be asked and told between records."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from forebay.core.outcomes import Done
from forebay.core.records import Record
from forebay.engine.stages import RecordStage
from forebay.engine.work import Work

ASK_EVERY_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Hooks:
    """A stage's, with what its handlers share at hand."""

    when_done: Callable[[Sequence[Record]], None] | None = None
    waits_for: Callable[[], str | None] | None = None


def hooks_of(stage: RecordStage, shared: Mapping[str, Any]) -> Hooks:
    def with_shared(hook: Callable[..., Any] | None) -> Callable[..., Any] | None:
        return None if hook is None else partial(hook, shared=shared)

    return Hooks(with_shared(stage.when_done), with_shared(stage.waits_for))


class DoneRecords:
    """Told of in batches, after their outputs are durable and before their offsets are committed.

    What the hook raises costs a repeat later, never a record now.
    """

    def __init__(
        self, tell: Callable[[Sequence[Record]], None], failed: Callable[[Exception], None]
    ) -> None:
        self._tell = tell
        self._failed = failed
        self._records: list[Record] = []

    def add(self, work: Work) -> None:
        if isinstance(work.result, Done):
            self._records.append(work.record)

    def flush(self) -> None:
        if not self._records:
            return
        records, self._records = self._records, []
        try:
            self._tell(records)
        except Exception as error:  # noqa: BLE001  a user's function, at the stage's edge
            self._failed(error)


class Gate:
    """Whether a stage may start records now. Asked now and then, for the answer may cost a look."""

    def __init__(self, waits_for: Callable[[], str | None] | None) -> None:
        self._waits_for = waits_for
        self._asked_at = float("-inf")
        self.reason: str | None = None

    def is_closed(self, now: float) -> bool:
        if self._waits_for is not None and now - self._asked_at >= ASK_EVERY_SECONDS:
            self._asked_at = now
            self.reason = self._answer(self._waits_for)
        return self.reason is not None

    @staticmethod
    def _answer(ask: Callable[[], str | None]) -> str | None:
        try:
            return ask()
        except Exception as error:  # noqa: BLE001  a user's function, at the stage's edge
            return (
                f"What the stage waits for cannot be asked ({type(error).__name__}: {error}). "
                f"Nothing is started; it is asked again."
            )
