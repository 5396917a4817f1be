"""A broker that is seen through: what is polled is backed up and told, so is what is committed.

It gives no producer, so that a consumer needs no right to write, and no group in dev mode.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from forebay.broker.port import Admin, Broker, BrokerDescription, Finding, Report
from forebay.broker.settings import ConsumerSettings, ProducerSettings
from forebay.core.errors import InvalidRequest
from forebay.core.records import Record
from forebay.mods.kafka_consumer.watched_consumer import Watch, WatchedConsumer


@dataclass(frozen=True, slots=True)
class WatchedBroker:
    broker: Broker
    watch: Watch

    def describe(self) -> BrokerDescription:
        return self.broker.describe()

    def diagnose(self) -> list[Finding]:
        return self.broker.diagnose()

    @property
    def record_bytes_max(self) -> int:
        return self.broker.record_bytes_max

    def admin(self) -> Admin:
        return self.broker.admin()

    def producer(self, settings: ProducerSettings | None = None) -> "NoProducer":  # noqa: ARG002 - the port's
        return NoProducer()

    def consumer(
        self, group: str | None, settings: ConsumerSettings | None = None
    ) -> WatchedConsumer:
        joined = None if self.watch.configuration.dev_mode else group
        return WatchedConsumer(self.broker.consumer(joined, settings), self.watch)

    def close(self) -> None:
        self.broker.close()


class NoProducer:
    """The mod sends nothing."""

    outstanding = 0

    def send(self, record: Record, token: object = None) -> None:
        raise InvalidRequest(f"The mod sends no records, so none to {record.topic} ({token}).")

    def send_many(self, records: Sequence[Record], token: object = None) -> int:
        for record in records:
            self.send(record, token)
        return 0

    def poll(self, timeout_seconds: float) -> list[Report]:
        """Nothing comes; who asks wants the time to pass."""
        if timeout_seconds > 0:
            time.sleep(timeout_seconds)
        return []

    def flush(self, timeout_seconds: float) -> int:  # noqa: ARG002 - the port's
        return 0

    def close(self, timeout_seconds: float = 10.0) -> list[Report]:  # noqa: ARG002 - the port's
        return []
