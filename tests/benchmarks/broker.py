"""`make bench-broker`: both brokers beside bare clients, as ratios within one run."""

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import embedded_rows
from benchmarks.kafka_rows import KafkaRows
from benchmarks.results import Bench, Row
from forebay.broker.kafka.trial import TrialCluster


def rows(kafka: KafkaRows) -> Iterator[Row]:
    yield from embedded_rows.rows()
    yield from kafka.rows()


def main() -> int:
    print("measuring both brokers beside bare clients; about five minutes on two cores")
    with TrialCluster() as cluster:
        kafka = KafkaRows(cluster)
        try:
            met = Bench("broker").run(rows(kafka))
        finally:
            kafka.close()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
