"""`make torture-engine`: the simulation (SEEDS=), or processes on both brokers (DURATION=)."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Here `engine` would be this file, and not the folder of that name.
sys.path.remove(str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from forebay.bootstrap import trial_kafka
from forebay.broker.kafka.trial import missing
from torture import engine_simulation
from torture.engine_audit import TOLD_MAX, Verdict, judge
from torture.engine_processes import FAULTS, Campaign, Plan
from torture.ledger import read_all

SHORT_SECONDS = 30
FULL_SECONDS = 600
FULL_RECORDS = 500_000
MANY = (12, 80)  # members and partitions
FEW = (5, 30)
MANY_FROM_SECONDS = 120
SUMS = ("acked", "delivered", "lost", "stuck", "doubled", "repeated")


def main() -> int:
    asked = _arguments()
    if asked.seeds is not None:
        print(f"simulating {asked.seeds} runs (about 25 s per 1,000)", flush=True)
        return engine_simulation.main()
    brokers = [asked.broker] if asked.broker != "both" else ["embedded", "kafka"]
    left_out = missing() if "kafka" in brokers else None
    if left_out:
        print(f"left out: the processes on a real Kafka ({left_out})")
        brokers.remove("kafka")
    seed = asked.seed if asked.seed is not None else int.from_bytes(os.urandom(3))
    print(
        f"torturing the engine for about {asked.duration:g} s on {', '.join(brokers)}, {seed=}",
        flush=True,
    )
    told = {broker: torture(broker, seed, asked.duration / len(brokers)) for broker in brokers}
    for name, one in told.items():
        for violation in one["told"][:TOLD_MAX]:
            print(f"  {name}: {violation}")
    result = _summary(seed, asked.duration, told)
    print(json.dumps(result))
    return 0 if result["ok"] else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=120)
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--broker", choices=("embedded", "kafka", "both"), default="both")
    return parser.parse_args()


def torture(broker: str, seed: int, seconds: float) -> dict:
    """A campaign on one broker, then its audit."""
    begun = time.monotonic()
    members, partitions = MANY if seconds >= MANY_FROM_SECONDS else FEW
    records = int(FULL_RECORDS * seconds / FULL_SECONDS)
    with tempfile.TemporaryDirectory(prefix="forebay-torture-") as home, _url(broker, home) as url:
        campaign = Campaign(
            Path(home) / "campaign", Plan(url, seed, seconds, members, partitions, records)
        )
        stored = campaign.run()
        verdict = judge(read_all(campaign.ledgers), stored, campaign.hurts)
    return _told(campaign, verdict, time.monotonic() - begun)


@contextmanager
def _url(broker: str, home: str) -> Iterator[str]:
    if broker == "embedded":
        yield f"embedded:{home}/broker"
        return
    with trial_kafka() as servers:
        yield f"kafka://{servers}"


def _told(campaign: Campaign, verdict: Verdict, seconds: float) -> dict:
    return {
        "executor": campaign.plan.executor,
        "members": campaign.plan.members,
        "partitions": campaign.plan.partitions,
        "seconds": round(seconds, 1),
        "acked": verdict.acked,
        "delivered": verdict.delivered,
        "lost": verdict.lost,
        "stuck": campaign.stuck,
        "doubled": verdict.doubled,
        "repeated": verdict.repeated,
        "repeated_at_most": verdict.repeated_at_most,
        "unasked_dead_letters": verdict.unasked_dead_letters,
        "drained_seconds": round(campaign.drained_in, 1),
        "faults": {fault: campaign.faults[fault] for fault in FAULTS},
        "told": campaign.told + verdict.violations,
    }


def _summary(seed: int, asked_seconds: float, told: dict[str, dict]) -> dict:
    faults: Counter[str] = Counter()
    for name, one in told.items():
        faults.update({f"{fault}_on_{name}": hits for fault, hits in one["faults"].items()})
    names = (*SUMS, "repeated_at_most", "unasked_dead_letters")
    sums = {name: sum(one[name] for one in told.values()) for name in names}
    violations = sum(len(one["told"]) for one in told.values())
    missed = [fault for fault, hits in faults.items() if not hits]
    is_short = asked_seconds < SHORT_SECONDS
    result = {
        "seed": seed,
        "seconds": round(sum(one["seconds"] for one in told.values()), 1),
        **sums,
        "violations": violations,
        "faults": dict(faults),
        "brokers": {
            name: {key: value for key, value in one.items() if key not in {"told", "faults"}}
            for name, one in told.items()
        },
    }
    if is_short:
        result["not_reached"] = missed
    is_bad = violations or sums["lost"] or sums["stuck"] or sums["doubled"]
    nothing_ran = not told or not all(one["acked"] and one["delivered"] for one in told.values())
    result["ok"] = not (is_bad or nothing_ran or (missed and not is_short))
    return result


if __name__ == "__main__":
    sys.exit(main())
