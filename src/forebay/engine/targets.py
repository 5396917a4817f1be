"""The topics on which retries come back: how much lies on them, and whether they take more."""

from collections.abc import Callable
from dataclasses import dataclass, field

from forebay.broker.port import Admin
from forebay.core.errors import ForebayError
from forebay.core.lag_gate import LagGate
from forebay.engine.lag import unresolved_on

LOOK_EVERY_SECONDS = 1.0
LOOK_AGAIN_SECONDS = 0.05
BACK_OFF_SECONDS = 0.5


@dataclass(slots=True)
class Target:
    """`refusal` is what a write to it met last, `lag_trouble` why nobody knows what lies on it."""

    gate: LagGate = field(default_factory=LagGate)
    looked_at: float = 0.0
    lag_trouble: str = ""
    refusal: str = ""
    refused_until: float = 0.0


class Targets:
    """Belongs to the scheduler's thread. `held` is told when a gate closes: (group, topic, lag)."""

    def __init__(self, admin: Admin, held: Callable[[str, str, int | None], object]) -> None:
        self._admin = admin
        self._held = held
        self._targets: dict[str, Target] = {}

    def is_refused(self, topic: str, now: float) -> bool:
        return now < self._of(topic).refused_until

    def has_room(self, topic: str, group: str, now: float) -> bool:
        """Room that was seen a second ago is none: others write there too."""
        target = self._of(topic)
        if target.gate.allowance == 0 or now - target.looked_at >= LOOK_EVERY_SECONDS:
            self._look(target, topic, group, now)
        return target.gate.allowance > 0

    def sent_to(self, topic: str) -> None:
        self._of(topic).gate.released()

    def took(self, topic: str) -> None:
        self._of(topic).refusal = ""

    def refused(self, topic: str, error: ForebayError, now: float) -> None:
        target = self._of(topic)
        target.refusal, target.refused_until = str(error), now + BACK_OFF_SECONDS

    def reasons(self, topics: set[str]) -> list[str]:
        """Why records for these wait, in sentences."""
        targets = [self._targets[topic] for topic in sorted(topics) if topic in self._targets]
        said = [reason for target in targets for reason in (target.refusal, target.lag_trouble)]
        return [reason for reason in said if reason]

    def _of(self, topic: str) -> Target:
        return self._targets.setdefault(topic, Target())

    def _look(self, target: Target, topic: str, group: str, now: float) -> None:
        """After each batch that was released, and once a second."""
        was_open = target.gate.is_open
        is_used_up = was_open and target.gate.allowance == 0
        pause = LOOK_AGAIN_SECONDS if is_used_up else LOOK_EVERY_SECONDS
        if target.looked_at and now - target.looked_at < pause:
            return
        target.looked_at = now
        lag: int | None = None
        try:
            lag = unresolved_on(self._admin, group, topic)
            target.lag_trouble = ""
        except ForebayError as error:
            target.lag_trouble = str(error)
        target.gate.look(lag)
        if was_open and not target.gate.is_open:
            self._held(group, topic, lag)
