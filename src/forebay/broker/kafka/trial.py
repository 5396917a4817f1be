"""A real Apache Kafka on loopback, from Maven jars: for trials, and for our own tests.

`python -m forebay.broker.kafka.trial` starts one and tells how to reach it.
"""

import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from forebay.broker.kafka import jars, readiness
from forebay.broker.kafka.jars import missing
from forebay.broker.kafka.listeners import Listener
from forebay.broker.kafka.node import TrialNode, new_id
from forebay.core.errors import Unavailable, Unusable

__all__ = ["TrialCluster", "missing"]

# Short timers instead of the defaults: a restart after a kill takes 2 s, not 11; a group forms at
# once; compaction and retention come within seconds.
_PROPERTIES = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.coordinator.append.linger.ms": "0",
    "controller.quorum.append.linger.ms": "0",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "500",
    "num.network.threads": "2",
    "num.io.threads": "2",
}
_ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1500",
}
_REPLICATED = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.lag.time.max.ms": "3000",
}


class TrialCluster:
    """One node, or three with everything replicated thrice. Its data goes when it stops.

    Start and stop it and its nodes from the main thread.
    """

    def __init__(
        self,
        nodes: int = 1,
        overrides: Mapping[str, str] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._listener = listener or Listener()
        self._overrides = dict(overrides or {})
        self._folder = tempfile.TemporaryDirectory(prefix="forebay-kafka-")
        cluster_id = new_id()
        folder = Path(self._folder.name)
        self.nodes = [TrialNode(number + 1, folder, cluster_id) for number in range(nodes)]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{node.client_port}" for node in self.nodes)

    @property
    def internal(self) -> str:
        """The plain-text listener of the nodes, for an admin who sets up users."""
        return ",".join(f"127.0.0.1:{node.internal_port}" for node in self.nodes)

    def start(self) -> None:
        try:
            check_installed()
            prepare_archive()
            self._start(jars.archive_flags())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """At once: what is thrown away needs no orderly end."""
        for node in self.nodes:
            node.kill()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def train(self, archive: Path) -> None:
        """Run once with the JVM told to keep the classes it loaded; it writes them at its end."""
        node = self.nodes[0]
        self._start([f"-XX:ArchiveClassesAtExit={archive}"])
        node.stop()

    def _start(self, flags: Sequence[str]) -> None:
        for node in self.nodes:
            node.configure(self._properties(node))
            node.spawn(flags)
        for node in self.nodes:
            node.wait_until_it_serves()
        self._warm_up()

    def _warm_up(self) -> None:
        deadline = time.monotonic() + 15
        while not readiness.coordinates(self.nodes[0].internal_port):
            if time.monotonic() > deadline:
                raise Unavailable(f"Kafka serves but coordinates no groups: {self.nodes[0].log}")
            time.sleep(0.02)

    def _properties(self, node: TrialNode) -> dict[str, str]:
        sizes = _REPLICATED if len(self.nodes) >= 3 else _ALONE
        voters = ",".join(
            f"{other.number}@127.0.0.1:{other.controller_port}" for other in self.nodes
        )
        return {
            **_PROPERTIES,
            **sizes,
            **self._addresses(node),
            **self._listener.properties(),
            "controller.quorum.voters": voters,
            **self._overrides,
        }

    def _addresses(self, node: TrialNode) -> dict[str, str]:
        for_all = (
            f"PLAINTEXT://127.0.0.1:{node.internal_port},CLIENT://127.0.0.1:{node.client_port}"
        )
        protocols = f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CLIENT:{self._listener.protocol}"
        return {
            "listeners": f"{for_all},CONTROLLER://127.0.0.1:{node.controller_port}",
            "advertised.listeners": for_all,
            "listener.security.protocol.map": protocols,
        }


def check_installed() -> None:
    if complaint := missing():
        raise Unusable(f"A trial Kafka cannot start: {complaint}")


def prepare_archive() -> None:
    """Halves every later start; takes some seconds, once per machine."""
    archive = jars.archive_file()
    if archive.exists():
        return
    with jars.locked(archive.with_suffix(".lock")):
        if archive.exists():
            return
        part = archive.with_suffix(".part")
        training = TrialCluster()
        try:
            training.train(part)
        finally:
            training.stop()
        part.rename(archive)


def main() -> int:
    signal.signal(signal.SIGTERM, _end)
    _tell("starting Apache Kafka", jars.KAFKA_VERSION, "(the first start fetches its jars, 1 min)")
    try:
        with TrialCluster() as cluster:
            _tell(f"Kafka serves at {cluster.bootstrap}, until Ctrl-C; its data goes then")
            _tell(f"try: forebay topics list --broker kafka://{cluster.bootstrap}")
            signal.pause()
    except Unusable as error:
        _tell(str(error))
        return 2
    except KeyboardInterrupt:
        _tell("Kafka stopped")
    return 0


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _tell(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
