"""`make bench-peers`: what a record costs in other frameworks, over a bare client, beside ours."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.engine_traffic import Traffic
from benchmarks.peers_environment import ROOT, NotInstalled, PeersEnvironment
from benchmarks.results import Bench, Row, Target
from forebay.broker.kafka.trial import TrialCluster

SCRIPTS = Path(__file__).with_name("peers")
PARTITIONS = 4
RECORDS = 40_000
RUN_SECONDS = 120


@dataclass(frozen=True)
class Peer:
    """`includes`: commits, decoding and order of its figure, then what it guarantees."""

    name: str
    script: str
    requirements: tuple[str, ...]
    includes: str
    arguments: tuple[str, ...] = ()
    at_least: float | None = None


BARE = Peer(
    "bare",
    "run_bare.py",
    ("confluent-kafka",),
    "poll and consume(499), value, key, headers, offset and timestamp read; no commits, no "
    "decoding, one after another; guarantees nothing",
)
THREADS = Peer(
    "forebay_threads",
    "run_forebay.py",
    ("--editable", str(ROOT)),
    "50 threads, key order, commits of tracked watermarks every 0.2 s, bytes as they are, context "
    "and retry headers; guarantees at least once, retries in tiers, dead letters that are "
    "acknowledged before their offset is committed",
)
ASYNC = Peer(
    "forebay_async",
    "run_forebay.py",
    ("--editable", str(ROOT)),
    THREADS.includes.replace("50 threads", "50 tasks on the event loop"),
    arguments=("async",),
)
FASTSTREAM = Peer(
    "faststream",
    "run_faststream.py",
    ("faststream[confluent]",),
    "confluent, manual ack: one asynchronous commit per record, JSON tried before bytes, one after "
    "another; guarantees at least once while nothing fails: no retries, no dead letters, a nack "
    "seeks back at once",
    at_least=25,
)
PYRALLEL = Peer(
    "pyrallel",
    "run_pyrallel.py",
    ("pyrallel-consumer",),
    "asyncio engine, key order, commits of tracked offsets after each round of its loop, no "
    "decoding; guarantees at least once over offsets without gaps: retries in memory, dead letters "
    "whose delivery is not awaited",
    at_least=20,
)
ARROYO = Peer(
    "arroyo_threads",
    "run_arroyo.py",
    ("sentry-arroyo",),
    "RunTaskInThreads with 50 threads, commits once a second in offset order, no decoding; no "
    "order between running records; guarantees at least once: no retries, dead letters that are "
    "passed over when sending them fails",
    at_least=2,
)
PEERS = (BARE, THREADS, ASYNC, FASTSTREAM, PYRALLEL, ARROYO)


class Rounds:
    """Everybody in turn, three times over, so that a busy moment hits all of them."""

    def __init__(self, environment: PeersEnvironment, traffic: Traffic) -> None:
        self._python = str(environment.python)
        self._traffic = traffic
        self._topic = traffic.filled(PARTITIONS, RECORDS)
        self._rounds: list[dict[str, float | Exception]] = []
        self.unusable: dict[str, NotInstalled] = {}

    def install(self, environment: PeersEnvironment) -> None:
        try:
            print(f"all of them on Python {environment.create()}, {RECORDS:,} records of one topic")
        except NotInstalled as problem:
            self.unusable = {peer.name: problem for peer in PEERS}
            return
        for peer in PEERS:
            try:
                environment.install(*peer.requirements)
            except NotInstalled as problem:
                self.unusable[peer.name] = problem

    def cpu_us(self, name: str, number: int) -> float:
        while len(self._rounds) <= number:
            self._rounds.append({peer.name: self._try(peer) for peer in PEERS})
        figure = self._rounds[number][name]
        if isinstance(figure, Exception):
            raise figure
        return figure

    def over_bare(self, name: str, number: int) -> float:
        return self.cpu_us(name, number) - self.cpu_us(BARE.name, number)

    def _try(self, peer: Peer) -> float | Exception:
        if peer.name in self.unusable:
            return self.unusable[peer.name]
        try:
            return self._measured(peer)
        except (subprocess.SubprocessError, ValueError, LookupError) as problem:
            return problem

    def _measured(self, peer: Peer) -> float:
        given = (self._traffic.bootstrap, self._topic, self._traffic.new_name(peer.name))
        done = subprocess.run(
            [self._python, SCRIPTS / peer.script, *given, str(RECORDS), *peer.arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=RUN_SECONDS,
        )
        told = json.loads(done.stdout.splitlines()[-1])
        assert told["records"] == RECORDS
        return float(told["cpu_us"])


def rows(rounds: Rounds) -> Iterator[Row]:
    for peer in PEERS:
        yield _cost_row(peer, rounds)
    for peer in PEERS:
        if peer.at_least is not None:
            yield _ratio_row(peer, rounds)


def _cost_row(peer: Peer, rounds: Rounds) -> Row:
    figure = rounds.cpu_us if peer is BARE else rounds.over_bare
    name = f"{peer.name}_cpu_us" + ("" if peer is BARE else "_over_bare")

    def measure(number: int) -> tuple[float, dict[str, float]]:
        behind = {"cpu_us": rounds.cpu_us(peer.name, number), "records": RECORDS}
        return figure(peer.name, number), behind

    return Row(name, "us", Target(), _each_time(measure), peer.includes)


def _ratio_row(peer: Peer, rounds: Rounds) -> Row:
    def measure(number: int) -> tuple[float, dict[str, float]]:
        theirs, threads, tasks = (
            rounds.over_bare(name, number) for name in (peer.name, THREADS.name, ASYNC.name)
        )
        behind = {"theirs_us": theirs, "ours_us": threads, "over_our_async": theirs / tasks}
        return theirs / threads, behind

    return Row(
        f"{peer.name}_over_ours",
        "ratio",
        Target(at_least=peer.at_least),
        _each_time(measure),
        f"CPU of a record over the bare client's, theirs over ours. Theirs: {peer.includes}. "
        f"Ours: {THREADS.includes}",
    )


def _each_time(
    measure: Callable[[int], tuple[float, dict[str, float]]],
) -> Callable[[], tuple[float, dict[str, float]]]:
    numbers = count()
    return lambda: measure(next(numbers))


def main() -> int:
    print("installing peers into .cache/peers and measuring each beside us; about three minutes")
    environment = PeersEnvironment(ROOT / ".cache" / "peers")
    with TrialCluster() as cluster:
        traffic = Traffic(cluster.bootstrap)
        try:
            rounds = Rounds(environment, traffic)
            rounds.install(environment)
            met = Bench("peers").run(rows(rounds))
        finally:
            traffic.close()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
