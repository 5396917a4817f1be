"""`make torture-xact`: the xact pipeline with everything failing, on both kinds of deployment."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from azurite.server import missing as azurite_missing
from forebay.broker.kafka.trial import missing as kafka_missing
from torture.xact_campaign import LOCAL_STEPS, STEPS, Campaign, Plan
from torture.xact_world import world_of

SHORT_SECONDS = 30
COMMON = (
    *("child_killed", "everything_killed", "child_frozen", "file_host_down", "cache_disk_full"),
    "second_supervisor",
)
OUTSIDE = {"embedded": (), "kafka": ("broker_bounced", "azurite_restarted")}
TOLD_MAX = 20


def main() -> int:
    asked = _arguments()
    brokers = [asked.broker] if asked.broker != "both" else ["embedded", "kafka"]
    left_out = (kafka_missing() or azurite_missing()) if "kafka" in brokers else None
    if left_out:
        print(f"left out: Kafka and Azurite ({left_out})")
        brokers.remove("kafka")
    seed = asked.seed if asked.seed is not None else int.from_bytes(os.urandom(3))
    print(
        f"torturing xact for about {asked.duration:g} s on {', '.join(brokers)}, then draining "
        f"and auditing it, {seed=}",
        flush=True,
    )
    told = {broker: torture(broker, seed, asked.duration / len(brokers)) for broker in brokers}
    result = _summary(seed, asked.duration, told)
    print(json.dumps(result))
    return 0 if result["ok"] else 1


def torture(broker: str, seed: int, seconds: float) -> dict[str, Any]:
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="forebay-torture-") as home,
        world_of(broker, Path(home)) as world,
    ):
        campaign = Campaign(world, Plan(seed, seconds))
        audit, truth = campaign.run()
        causes = world.causes()
        log = world.log.read_text(errors="replace")[-3000:]
    wanted = (*COMMON, *OUTSIDE[broker], *STEPS)
    wanted += LOCAL_STEPS if broker == "embedded" else ()
    if not audit["ok"]:
        print(f"  the log of {broker} ends with:\n{log}")
    return {
        "seconds": round(time.monotonic() - begun, 1),
        "acked": campaign.acked,
        "audit": audit,
        "truth": truth.as_object(),
        "causes": causes,
        "faults": {name: campaign.faults[name] for name in wanted},
        "host": {n: h for n, h in campaign.faults.items() if n.startswith("host_")},
    }


def _summary(seed: int, asked_seconds: float, told: dict[str, dict[str, Any]]) -> dict[str, Any]:
    faults: Counter[str] = Counter()
    for broker, one in told.items():
        faults.update({f"{name}_on_{broker}": hits for name, hits in one["faults"].items()})
    missed = [name for name, hits in faults.items() if not hits]
    violations = [told_of for broker, one in told.items() for told_of in _violations(broker, one)]
    for violation in violations[:TOLD_MAX]:
        print(f"  {violation}")
    states = [one["audit"]["attachments"] for one in told.values()]
    result: dict[str, Any] = {
        "seed": seed,
        "seconds": round(sum(one["seconds"] for one in told.values()), 1),
        "acked": sum(one["acked"] for one in told.values()),
        "delivered": sum(one["audit"]["events"] for one in told.values()),
        "lost": sum(state.get("lost", 0) for state in states),
        "stuck": sum(state.get("waiting", 0) for state in states),
        "doubled": sum(one["audit"].get("doubled", 0) for one in told.values()),
        "repeated": sum(one["audit"].get("repeated", 0) for one in told.values()),
        "violations": len(violations),
        "faults": dict(faults),
        "worlds": {
            broker: {"attachments": one["audit"]["attachments"], "truth": one["truth"]}
            | {"host": one["host"], "seconds": one["seconds"]}
            for broker, one in told.items()
        },
    }
    is_short = asked_seconds < SHORT_SECONDS
    if is_short:
        result["not_reached"] = missed
    result["ok"] = not violations and (is_short or not missed) and result["acked"] > 0
    return result


def _violations(broker: str, one: dict[str, Any]) -> list[str]:
    audit, truth = one["audit"], one["truth"]
    found = [f"{broker}: {finding['kind']}: {finding['detail']}" for finding in audit["findings"]]
    attachments = audit["attachments"]
    sums = sum(attachments.values())
    if sums != truth["attachments"]:
        found.append(f"{broker}: {sums} attachments are accounted for, {truth['attachments']} sent")
    if attachments.get("refused") != truth["refused"]:
        found.append(
            f"{broker}: {attachments.get('refused')} are refused, the script says "
            f"{truth['refused']}"
        )
    if not audit["ok"]:
        found.append(f"{broker}: the audit is not ok")
    if found:
        found += [f"{broker}: dead letters: {cause}" for cause in one["causes"]]
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=120)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--broker", choices=("embedded", "kafka", "both"), default="both")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
