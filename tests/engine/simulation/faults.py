"""What goes wrong in one run, drawn from its seed and counted."""

import random
from collections import Counter

# Chance of each, at every place where it may happen.
RATES = {
    "poll_unavailable": 0.02,
    "start_unavailable": 0.1,
    "commit_failed": 0.08,
    "commit_late": 0.3,
    "report_late": 0.3,
    "report_failed": 0.06,
    "report_unknown": 0.04,
    "too_large_report": 0.02,
    "producer_full": 0.05,
    "letter_place_away": 0.1,
    "crash_in_call": 0.002,
    "crash": 0.012,
    "join": 0.03,
    "leave": 0.012,
    "freeze": 0.012,
    "expelled": 0.012,
    "trim": 0.02,
    "time_jump": 0.04,
}

# Counted where they are seen, because they follow from the others or from a script.
CONSEQUENCES = (
    *("gap", "revoked", "lost", "assigned_back", "expired", "timeout", "late_result"),
    *("handler_raised", "handler_stopped", "hook_raised", "output_refused", "headers_forged"),
    *("record_shrunk", "letter_spilled", "lane_cleared"),
)
NAMES = (*RATES, *CONSEQUENCES)


class Faults:
    """Of one run. `are_over` ends them, so that what is left can be seen to drain."""

    def __init__(self, chance: random.Random, hits: Counter[str]) -> None:
        self._chance = chance
        self.hits = hits
        self.are_over = False
        # A run that has everything at once shows less than one that has some of it often.
        self._rates = {name: rate * chance.choice((0, 1, 1, 3)) for name, rate in RATES.items()}

    def hit(self, name: str) -> bool:
        if self.are_over or self._chance.random() >= self._rates[name]:
            return False
        self.hits[name] += 1
        return True

    def seen(self, name: str) -> None:
        self.hits[name] += 1
