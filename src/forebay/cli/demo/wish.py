"""What the command line asked of a demo."""

from dataclasses import dataclass
from pathlib import Path

OWN_BROKERS = (None, "embedded", "kafka")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`rate`: events a second; None takes the script's own times, 0 is as fast as it goes."""

    scenario: str
    events: int
    rate: float | None
    domains: str
    seed: int
    exit_when_done: bool
    broker: str | None
    folder: Path | None
    config: Path | None
    log_level: str | None
    as_json: bool

    @property
    def is_on_own_broker(self) -> bool:
        return self.broker in OWN_BROKERS
