"""A broker in this process, on the same port, for users' tests and simulations."""

import uuid

from forebay.broker.port import BrokerDescription, Finding
from forebay.broker.settings import RECORD_BYTES_MAX, ConsumerSettings, ProducerSettings
from forebay.core.clock import Clock
from forebay.observability.clock import SystemClock
from forebay.testing.memory_admin import MemoryAdmin
from forebay.testing.memory_consumer import MemoryConsumer
from forebay.testing.memory_log import MemoryStore
from forebay.testing.memory_producer import MemoryProducer


class MemoryBroker:
    """Topics, groups, fencing and limits as on a real broker; nothing survives the process.

    The clock gives timestamps and expels members that do not poll. Waiting in `poll` takes real
    time: with a clock that stands still, poll with a timeout of 0.
    """

    def __init__(
        self, clock: Clock | None = None, *, record_bytes_max: int = RECORD_BYTES_MAX
    ) -> None:
        self._store = MemoryStore(clock or SystemClock())
        self._identity = uuid.uuid4().hex
        self._record_bytes_max = record_bytes_max
        self._given: list[MemoryProducer | MemoryConsumer] = []

    def describe(self) -> BrokerDescription:
        sentence = "broker memory (this process alone, nothing is kept)"
        return BrokerDescription("memory", self._identity, sentence)

    def diagnose(self) -> list[Finding]:
        return [Finding("broker", ok=True, detail="in this process; nothing to check")]

    @property
    def record_bytes_max(self) -> int:
        return self._record_bytes_max

    def admin(self) -> MemoryAdmin:
        return MemoryAdmin(self._store)

    def producer(self, settings: ProducerSettings | None = None) -> MemoryProducer:
        producer = MemoryProducer(
            self._store, settings or ProducerSettings(), self._record_bytes_max
        )
        self._given.append(producer)
        return producer

    def consumer(
        self, group: str | None, settings: ConsumerSettings | None = None
    ) -> MemoryConsumer:
        consumer = MemoryConsumer(self._store, group, settings or ConsumerSettings())
        self._given.append(consumer)
        return consumer

    def refuse_writes(self, topic: str) -> None:
        """From now on a record for this topic is reported as Unavailable."""
        self._store.refused.add(topic)

    def accept_writes(self, topic: str) -> None:
        self._store.refused.discard(topic)

    def close(self) -> None:
        while self._given:
            self._given.pop().shut()
