"""`make mutants`: every planted fault must be caught, by a named test or by the simulation."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from engine import test_regressions
from engine.mutants.faulty import FAULTS
from engine.simulation.member import Kinds
from engine.simulation.scenario import run
from engine.stepped import Stepped
from forebay.core.errors import ForebayError
from forebay.engine.loop import StageLoop

SEEDS_MAX = 150
NOTICED = (AssertionError, ForebayError)

# Where a test names the fault, it must catch it; the others are the simulation's.
NAMED: dict[str, tuple[Callable[..., None], dict[str, bool]]] = {
    "commit before the acknowledgement": (
        test_regressions.test_a_dead_letter_that_is_not_acknowledged_holds_its_offset,
        {},
    ),
    "dead letter's failure swallowed": (
        test_regressions.test_a_dead_letter_that_is_not_acknowledged_holds_its_offset,
        {},
    ),
    "commit of last + 1": (test_regressions.test_a_commit_never_passes_work_in_flight, {}),
    "failed commit taken for a stored one": (
        test_regressions.test_a_refused_commit_is_not_taken_for_a_stored_one,
        {},
    ),
    "no generation check": (
        test_regressions.test_a_stale_entry_does_not_swallow_the_fresh_record_at_its_offset,
        {},
    ),
    "lost taken for revoked": (test_regressions.test_lost_partitions_are_not_committed, {}),
    "revoke without a drain": (
        test_regressions.test_a_revocation_waits_for_what_runs_and_commits_it,
        {},
    ),
    "no poll without room": (
        test_regressions.test_a_stage_that_can_take_nothing_polls_at_least_once_a_second,
        {"is_stopping": False},
    ),
    "offsets taken for continuous": (
        test_regressions.test_gaps_neither_hold_a_commit_nor_skew_it,
        {},
    ),
}


def main() -> int:
    caught_by = {name: caught for name in FAULTS if (caught := catch(name))}
    survived = [name for name in FAULTS if name not in caught_by]
    is_sound = not any(run(seed).violation for seed in range(SEEDS_MAX))
    verdict = {
        "planted": len(FAULTS),
        "survived": survived,
        "caught_by": caught_by,
        "sound_without_them": is_sound,
        "ok": is_sound and not survived,
    }
    print(json.dumps(verdict))
    return 0 if verdict["ok"] else 1


def catch(name: str) -> str:
    """Who notices the fault, "" where nobody does."""
    if name in NAMED:
        test, arguments = NAMED[name]
        return _named(FAULTS[name], test, arguments)
    for seed in range(SEEDS_MAX):
        if violation := run(seed, FAULTS[name]).violation:
            return f"simulation, seed {seed}: {violation[:60]}"
    return ""


def _named(kinds: Kinds, test: Callable[..., None], arguments: dict[str, bool]) -> str:
    Stepped.loop_class = kinds.loop  # the class itself: a loop is made deep inside the test
    try:
        test(**arguments)
    except NOTICED:
        return test.__name__
    finally:
        Stepped.loop_class = StageLoop
    return ""


if __name__ == "__main__":
    sys.exit(main())
