"""`make torture-engine`: as many seeded runs of the simulation as asked, one line of JSON last."""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine.simulation.faults import NAMES
from engine.simulation.scenario import Told, run

SEEDS_FOR_EVERY_FAULT = 200
SHOWN_MAX = 5
SUMS = ("steps", "commits", "acked", "delivered", "lost", "stuck", "doubled", "repeated")


def main() -> int:
    asked = _arguments()
    began_at = time.monotonic()
    sums: Counter[str] = Counter(dict.fromkeys(SUMS, 0))
    hits: Counter[str] = Counter(dict.fromkeys(NAMES, 0))
    violations: list[str] = []
    for seed in range(asked.first, asked.first + asked.seeds):
        told = run(seed)
        sums.update({name: getattr(told, name) for name in SUMS})
        hits.update(told.faults)
        if told.violation:
            _show(told, violations)
    seconds = round(time.monotonic() - began_at, 1)
    verdict = _verdict(asked, hits, violations)
    print(
        json.dumps(
            {"seed": asked.first, "seeds": asked.seeds, "seconds": seconds, **sums} | verdict
        )
    )
    return 0 if verdict["ok"] else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--seed", dest="first", type=int, default=0, help="the first of them")
    return parser.parse_args()


def _show(told: Told, violations: list[str]) -> None:
    """The first few with their last steps; `--seed N --seeds 1` shows any of them."""
    violations.append(f"seed {told.seed}: {told.violation}")
    if len(violations) <= SHOWN_MAX:
        print(f"{violations[-1]}\n{told.trail}\n", flush=True)


def _verdict(
    asked: argparse.Namespace, hits: Counter[str], violations: list[str]
) -> dict[str, object]:
    not_reached = sorted(name for name in NAMES if not hits[name])
    is_long = asked.seeds >= SEEDS_FOR_EVERY_FAULT
    unasked = sum("nobody asked" in violation for violation in violations)
    told: dict[str, object] = {
        "violations": len(violations),
        "violating": violations[:SHOWN_MAX],
        "unasked_dead_letters": unasked,
        "faults": dict(sorted(hits.items())),
    }
    if not_reached and not is_long:
        told["not_reached"] = not_reached
    return told | {"ok": not violations and not (is_long and not_reached)}


if __name__ == "__main__":
    sys.exit(main())
