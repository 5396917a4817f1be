"""`make bench-engine`: what the engine costs, waits and keeps, beside a bare client on one Kafka.

`engine.py cost latency` measures these families alone.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.engine_cost import CostRows
from benchmarks.engine_idle import IdleRows
from benchmarks.engine_latency import LatencyRows
from benchmarks.engine_memory import MemoryRows
from benchmarks.engine_rebalances import RebalanceRows
from benchmarks.engine_redelivery import RedeliveryRows
from benchmarks.engine_sleeping import SleepingRows
from benchmarks.engine_traffic import Traffic
from benchmarks.results import Bench, Row
from forebay.broker.kafka.trial import TrialCluster


def rows(traffic: Traffic, wanted: list[str]) -> Iterator[Row]:
    families: dict[str, Callable[[], Iterator[Row]]] = {
        "cost": CostRows(traffic).rows,
        "sleeping": SleepingRows(traffic).rows,
        "latency": LatencyRows(traffic).rows,
        "idle": IdleRows(traffic).rows,
        "memory": MemoryRows(traffic).rows,
        "rebalances": RebalanceRows(traffic).rows,
        "redelivery": RedeliveryRows(traffic).rows,
    }
    for name in wanted or families:
        yield from families[name]()


def main() -> int:
    print("measuring the engine beside a bare client on a real Kafka; about seven minutes")
    with TrialCluster() as cluster:
        traffic = Traffic(cluster.bootstrap)
        try:
            met = Bench("engine").run(rows(traffic, sys.argv[1:]))
        finally:
            traffic.close()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
