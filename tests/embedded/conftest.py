from pathlib import Path

import pytest

from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def open_broker(folder: Path):
    """Opens brokers on the test's folder, and closes them at the end."""
    opened = []

    def open_one(**options) -> EmbeddedBroker:
        settings = options.pop("settings", EmbeddedSettings(folder))
        opened.append(EmbeddedBroker(settings, **options))
        return opened[-1]

    yield open_one
    for broker in opened:
        broker.close()


@pytest.fixture
def broker(open_broker) -> EmbeddedBroker:
    return open_broker()


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    broker.admin().create_topic(TopicSpec("orders"))
    return "orders"


@pytest.fixture
def send():
    """Stores values in partition 0 and waits for the acknowledgements."""

    def send_values(broker: EmbeddedBroker, topic: str, values, timestamp_ms: int = -1) -> None:
        producer = broker.producer()
        for value in values:
            producer.send(Record(value, topic=topic, partition=0, timestamp_ms=timestamp_ms))
        reports = producer.close()
        assert [report.error for report in reports if report.error] == []

    return send_values


@pytest.fixture
def read():
    """All that partition 0 holds from its low watermark on."""

    def read_values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
        partition = TopicPartition(topic, 0)
        consumer = broker.consumer(None)
        consumer.assign({partition: broker.admin().watermarks([partition])[partition].low})
        values: list[bytes | None] = []
        while records := consumer.poll(0.0, max_records=10_000):
            values += [record.value for record in records]
        consumer.close()
        return values

    return read_values
