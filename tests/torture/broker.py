"""`make torture-broker`: kills, freezes, races, power cuts and bad disks, judged from outside."""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from torture import first_start, storage_rounds
from torture.audit import Verdict, judge
from torture.ledger import read_all
from torture.processes import TAKEOVER_SECONDS, Campaign, read_log

FAULTS = (
    *("kill_produce", "kill_consume", "freeze_produce", "freeze_consume"),
    *("first_start_race", "power_cut", "disk_full", "write_error", "sync_error"),
)
SHORT_SECONDS = 30
WAL_BYTES_MAX = (64 + 16) * 2**20  # the bound, and one checkpoint


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--duration", type=float, default=120)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(3))
    print(f"torturing the embedded broker for about {options.duration:g} s, seed {seed}")
    result = torture(seed, options.duration)
    for violation in result.pop("told")[:20]:
        print(f"  {violation}")
    print(json.dumps(result))
    return 0 if result["ok"] else 1


def torture(seed: int, seconds: float) -> dict:
    """Two thirds for processes, one for disks; then the audits."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="forebay-torture-") as home:
        campaign = Campaign(Path(home), seed)
        campaign.run(seconds * 2 / 3)
        log, committed = read_log(campaign.folder)
        verdict = judge(read_all(campaign.ledgers), log, committed)
    faults = campaign.faults
    verdict.violations += first_start.race()
    faults["first_start_race"] += 1
    _torture_disks(seed, seconds / 3, verdict, faults)
    return _summary(seed, time.monotonic() - started, verdict, campaign, faults)


def _torture_disks(seed: int, seconds: float, verdict: Verdict, faults: Counter[str]) -> None:
    deadline = time.monotonic() + seconds
    number = seed * 1000
    while time.monotonic() < deadline:
        outcome = storage_rounds.run_round(number)
        verdict.acked += outcome.acked
        verdict.lost += outcome.lost
        verdict.violations += [f"round {number}: {told}" for told in outcome.violations]
        faults += outcome.faults
        number += 1


def _summary(
    seed: int, seconds: float, verdict: Verdict, campaign: Campaign, faults: Counter[str]
) -> dict:
    late = [takeover for takeover in campaign.takeovers if takeover > TAKEOVER_SECONDS]
    told = verdict.violations + [f"a takeover took {takeover:.2f} s" for takeover in late]
    if campaign.wal_bytes_max > WAL_BYTES_MAX:
        told.append(f"the WAL grew to {campaign.wal_bytes_max} bytes")
    missed = [fault for fault in FAULTS if not faults[fault]]
    is_short = seconds < SHORT_SECONDS
    result = {
        "seed": seed,
        "seconds": round(seconds, 1),
        "acked": verdict.acked,
        "delivered": verdict.delivered,
        "lost": verdict.lost,
        "stuck": len(campaign.hung),
        "doubled": verdict.doubled,
        "repeated": verdict.repeated,
        "violations": len(told),
        "faults": {fault: faults[fault] for fault in FAULTS},
        "kills": sum(count for fault, count in faults.items() if fault.startswith("kill_")),
        "takeovers": len(campaign.takeovers),
        "takeover_max_ms": round(max(campaign.takeovers, default=0) * 1000),
        "wal_max_mib": round(campaign.wal_bytes_max / 2**20, 1),
    }
    if is_short:
        result["not_reached"] = missed
    result["ok"] = not (
        verdict.lost
        or campaign.hung
        or verdict.doubled
        or told
        or not verdict.acked
        or not verdict.delivered
        or (missed and not is_short)
    )
    result["told"] = campaign.hung + told
    return result


if __name__ == "__main__":
    sys.exit(main())
