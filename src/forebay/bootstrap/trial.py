"""A trial Kafka that its owner may take away for a while."""

# ruff: noqa: PLC0415  imported where it is built, so that no command pays for what it leaves out

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forebay.broker.kafka.trial import TrialCluster


class KafkaOnTrial:
    """Use it from the main thread: the broker's processes end with the thread they came from."""

    def __init__(self, cluster: TrialCluster) -> None:
        self._cluster = cluster

    @property
    def servers(self) -> str:
        return self._cluster.bootstrap

    @property
    def process_id(self) -> int | None:
        return self._cluster.nodes[0].pid

    def kill(self) -> None:
        for node in self._cluster.nodes:
            node.kill()

    def start_again(self) -> None:
        """Returns before it serves."""
        from forebay.broker.kafka import jars

        for node in self._cluster.nodes:
            node.spawn(jars.archive_flags())


@contextmanager
def kafka_on_trial() -> Iterator[KafkaOnTrial]:
    """From jars; gone with the block, and its data with it."""
    from forebay.broker.kafka.trial import TrialCluster

    with TrialCluster() as cluster:
        yield KafkaOnTrial(cluster)
