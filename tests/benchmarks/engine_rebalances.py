"""What a stage has gathered after many rebalances, with records running through all of them."""

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.engine_stage import PARTITIONS, Declared, running, site_on, wait_until
from benchmarks.engine_traffic import HEADERS, KEYS, VALUE, Traffic
from benchmarks.engine_worker import measured
from benchmarks.kafka_worker import memory_mib
from benchmarks.results import Row, Target
from forebay.broker.port import Broker, Consumer
from forebay.broker.settings import ConsumerSettings
from forebay.core.records import CommittedOffset, Record, TopicPartition
from forebay.engine.context import Context
from forebay.engine.loop import StageLoop

ON_EMBEDDED = 1_000
ON_KAFKA = 50
WARM_UP = 10
RECORDS_A_ROUND = 20
HANDLER_SECONDS = 0.002
QUICK = ConsumerSettings(heartbeat_seconds=0.1)


class RebalanceRows:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def rows(self) -> Iterator[Row]:
        yield Row(
            "rebalances_growth",
            "entries + threads + bytes",
            Target(at_most=0),
            self._growth,
            f"what a stage keeps when nothing is left to do, after {ON_EMBEDDED:,} rebalances on "
            f"embedded and {ON_KAFKA} on Kafka less before: entries (of offsets, lanes, commits), "
            "threads of the process, bytes held; another member joins and leaves while records run",
            runs=1,
        )

    def _growth(self) -> tuple[float, dict[str, float]]:
        embedded = self._after(ON_EMBEDDED, None)
        kafka = self._after(ON_KAFKA, self._traffic.bootstrap)
        figures = {f"embedded_{name}": value for name, value in embedded.items()}
        figures |= {f"kafka_{name}": value for name, value in kafka.items()}
        return embedded["growth"] + kafka["growth"], figures

    def _after(self, rebalances: int, bootstrap: str | None) -> dict[str, float]:
        return measured(
            "rebalances",
            "ours",
            bootstrap=bootstrap,
            rebalances=rebalances,
            name=self._traffic.new_name("rebalances"),
        )


@dataclass(frozen=True)
class Kept:
    entries: int
    threads: int
    bytes: int

    def growth_since(self, before: "Kept") -> int:
        return sum(max(0, asdict(self)[name] - was) for name, was in asdict(before).items())


def ours(bootstrap: str | None, rebalances: int, name: str) -> dict[str, float]:
    def work(payload: bytes, context: Context) -> None:
        time.sleep(HANDLER_SECONDS)

    declared = Declared(name, f"{name}-in", work)
    pipeline = declared.pipeline()
    with site_on(bootstrap) as site:
        quick = replace(site, consumer=QUICK)
        with running(pipeline, quick) as loop:
            rounds = _Rounds(site.broker, loop, declared.topic)
            rounds.play(WARM_UP)
            before, before_mib = rounds.kept(), memory_mib()
            started = time.monotonic()
            rounds.play(rebalances)
            seconds = time.monotonic() - started
            after = rounds.kept()
            return {
                "growth": after.growth_since(before),
                "rebalances": rebalances,
                "entries": after.entries,
                "threads": after.threads,
                "bytes": after.bytes,
                "rss_growth_mib": memory_mib() - before_mib,
                "handled": loop.counters.handled,
                "delivered": loop.counters.delivered,
                "sent": rounds.sent,
                "seconds": seconds,
            }


class _Rounds:
    """Another member comes and goes; what it reads it leaves for the stage."""

    def __init__(self, broker: Broker, loop: StageLoop, topic: str) -> None:
        self._broker = broker
        self._loop = loop
        self._topic = topic
        self._producer = broker.producer()
        self.sent = 0

    def play(self, rebalances: int) -> None:
        """A join is one, a leave is the next."""
        for _ in range(rebalances // 2):
            self._send()
            self._come_and_go()

    def _come_and_go(self) -> None:
        other = self._broker.consumer(self._loop.route.group, QUICK)
        other.subscribe(self._loop.route.reads, _Bystander())
        wait_until(lambda: self._is_shared(other), "second member", look_seconds=0)
        other.close()
        wait_until(lambda: len(self._loop.held) == PARTITIONS, "partitions", look_seconds=0.001)

    def kept(self) -> Kept:
        """Once everything that was sent is handled and committed."""
        wait_until(self._is_at_rest, "rest")
        loop = self._loop
        commits = loop._commits
        entries = sum(
            held.progress.entries + len(held.lanes) + len(held.ready) for held in loop.held
        )
        entries += (
            len(loop._dispatch.out) + len(loop._dispatch.stuck) + len(loop._executor.finished)
        )
        entries += len(commits._asked) + len(commits._stored) + len(commits.notes)
        return Kept(entries, _threads(), loop.held.bytes)

    def _is_at_rest(self) -> bool:
        self._producer.poll(0)
        held = self._loop.held
        done = sum(one.progress.watermark for one in held)
        return done == self.sent and self._loop._commits.is_clean(held)

    def _is_shared(self, other: Consumer) -> bool:
        other.poll(0.002)
        theirs = len(other.assignment)
        return theirs > 0 and len(self._loop.held) == PARTITIONS - theirs

    def _send(self) -> None:
        for _ in range(RECORDS_A_ROUND):
            key = KEYS[self.sent % len(KEYS)]
            self._producer.send(Record(VALUE, key, HEADERS, self._topic))
            self.sent += 1
        self._producer.poll(0)


class _Bystander:
    def assigned(self, committed: Mapping[TopicPartition, CommittedOffset | None]) -> None:
        """Reads from where it is put."""

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Keeps nothing."""

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Keeps nothing."""


def _threads() -> int:
    """The client's own too."""
    return len(list(Path("/proc/self/task").iterdir()))
