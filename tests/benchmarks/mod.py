"""`make bench-mod`: the kafka_consumer mod beside a bare client and kafka-python with threads."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.engine_traffic import Traffic
from benchmarks.peers_environment import ROOT, NotInstalled, PeersEnvironment
from benchmarks.results import Bench, Row, Target
from forebay.broker.kafka.trial import TrialCluster

SCRIPTS = Path(__file__).with_name("peers")
PARTITIONS = 4
RECORDS = 40_000
SLEEPING = 6_000
LARGE = 5_000
LARGE_BYTES = 10_000
RUN_SECONDS = 180
WORKERS, SLEEP_SECONDS = 50, 0.05

_NOOP = (
    "all CPU of the process over that of a bare client (run_bare.py) in the same round; no-op "
    "processor that counts itself, 50 threads, 200-byte messages, commits of watermarks every 5 s"
)


@dataclass(frozen=True)
class Job:
    """A script of peers/, what it reads, and its last words."""

    script: str
    topic: str
    records: int
    words: tuple[str, ...] = ()


class Rounds:
    """All of a round one after the other, so that a busy moment hits all of them."""

    def __init__(self, environment: PeersEnvironment, traffic: Traffic) -> None:
        self._python = str(environment.python)
        self._traffic = traffic
        noop = traffic.filled(PARTITIONS, RECORDS)
        self._jobs = {
            "bare": Job("run_bare.py", noop, RECORDS),
            "noop": Job("run_mod.py", noop, RECORDS),
            "backup": Job("run_mod.py", noop, RECORDS, ("backup",)),
            "info": Job("run_mod.py", noop, RECORDS, ("info",)),
            "kafka_python": Job("run_kafka_python.py", noop, RECORDS),
            "sleep": Job("run_mod.py", noop, SLEEPING, ("sleep",)),
            "large": Job("run_mod.py", _large(traffic), LARGE, ("large",)),
        }
        self._rounds: list[dict[str, dict[str, float]]] = []

    def told(self, name: str, number: int) -> dict[str, float]:
        while len(self._rounds) <= number:
            self._rounds.append({})
        told = self._rounds[number]
        if name not in told:
            told[name] = self._measured(self._jobs[name])
        return told[name]

    def _measured(self, job: Job) -> dict[str, float]:
        given = (self._traffic.bootstrap, job.topic, self._traffic.new_name("mod"))
        done = subprocess.run(
            [self._python, SCRIPTS / job.script, *given, str(job.records), *job.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # its log, which is written and not read
            text=True,
            check=True,
            timeout=RUN_SECONDS,
        )
        told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return told


def _large(traffic: Traffic) -> str:
    topic = traffic.topic(PARTITIONS)
    producer = Producer({"bootstrap.servers": traffic.bootstrap, "linger.ms": 50})
    for _ in range(LARGE):
        producer.produce(topic, b"x" * LARGE_BYTES)
        producer.poll(0)
    assert producer.flush(60) == 0
    return topic


def rows(rounds: Rounds) -> Iterator[Row]:
    yield _workers_use(rounds)
    yield _over_bare(rounds, "noop", "noop_cpu_us_over_bare", 20, "level WARNING, backup off")
    yield _over_bare(
        rounds, "backup", "noop_cpu_us_over_bare_with_backup", 30, "level WARNING, backup on"
    )
    yield _over_bare(
        rounds,
        "info",
        "noop_cpu_us_over_bare_at_info",
        None,
        "the documented INFO line of each message, as JSON; backup off",
    )
    yield _over_kafka_python(rounds)
    yield _memory(rounds)


def _workers_use(rounds: Rounds) -> Row:
    numbers = count()

    def measure() -> tuple[float, dict[str, float]]:
        told = rounds.told("sleep", next(numbers))
        return SLEEP_SECONDS * 1e6 / WORKERS / told["wall_us"], told

    includes = (
        f"{SLEEPING:,} messages of {SLEEP_SECONDS * 1000:g} ms on {WORKERS} threads: the time they "
        "need at least over the time they took"
    )
    return Row("workers_use", "ratio", Target(at_least=0.95), measure, includes)


def _over_bare(rounds: Rounds, job: str, name: str, most: float | None, what: str) -> Row:
    numbers = count()

    def measure() -> tuple[float, dict[str, float]]:
        number = next(numbers)
        bare, ours = rounds.told("bare", number), rounds.told(job, number)
        behind = {"bare_us": bare["cpu_us"], "ours_us": ours["cpu_us"], "wall_us": ours["wall_us"]}
        return ours["cpu_us"] - bare["cpu_us"], behind

    return Row(name, "us", Target(at_most=most), measure, f"{_NOOP}; {what}")


def _over_kafka_python(rounds: Rounds) -> Row:
    numbers = count()

    def measure() -> tuple[float, dict[str, float]]:
        number = next(numbers)
        ours, theirs = rounds.told("noop", number), rounds.told("kafka_python", number)
        behind = {"ours_us": ours["cpu_us"], "theirs_us": theirs["cpu_us"]}
        return ours["cpu_us"] / theirs["cpu_us"], behind

    includes = (
        "CPU of a message, the mod's at level WARNING without a backup over kafka-python's with a "
        "queue of 200 and 50 threads (run_kafka_python.py), both with the client's own"
    )
    return Row("over_kafka_python_50_threads", "ratio", Target(at_most=0.5), measure, includes)


def _memory(rounds: Rounds) -> Row:
    numbers = count()

    def measure() -> tuple[float, dict[str, float]]:
        told = rounds.told("large", next(numbers))
        return told["rss_mib"], told

    includes = (
        f"most memory of the process, 50 threads, a queue of 200, {LARGE:,} messages of "
        f"{LARGE_BYTES:,} bytes"
    )
    return Row("rss_mib", "MiB", Target(at_most=150), measure, includes)


def main() -> int:
    print("installing kafka-python into .cache/mod-bench, then measuring; about four minutes")
    environment = PeersEnvironment(ROOT / ".cache" / "mod-bench")
    with TrialCluster() as cluster:
        traffic = Traffic(cluster.bootstrap)
        bench = Bench("mod")
        try:
            version = environment.create()
            environment.install("--editable", str(ROOT), "kafka-python")
        except NotInstalled as problem:
            print(f"kafka-python cannot be installed here: {problem}", file=sys.stderr)
            return 1
        print(f"all of them on Python {version}")
        is_met = bench.run(rows(Rounds(environment, traffic)))
        traffic.close()
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
