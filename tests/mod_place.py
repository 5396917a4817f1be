"""The kafka_consumer mod in this process, over a broker that a test gives it."""

import threading
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forebay.broker.port import Broker
from forebay.core.records import Record, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.idle import committed_of
from forebay.engine.letter_file import read_letters
from forebay.mods.kafka_consumer.consumer_run import run_consumer, run_on
from forebay.mods.kafka_consumer.stopping import Wish
from forebay.mods.kafka_consumer.telling import Teller
from forebay.mods.kafka_consumer.validation import configuration_of
from forebay.mods.result import Ended
from forebay.testing.waiting import eventually

TOPIC = "orders"
GROUP = "order-processor.prod"


class Processed:
    """A processor that keeps what it is given, and may be held back."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.running = 0
        self.running_max = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._counting = threading.Lock()

    def __call__(self, value: bytes | None) -> None:
        with self._counting:
            self.running += 1
            self.running_max = max(self.running, self.running_max)
        self.may_go_on.wait(30)
        with self._counting:
            self.running -= 1
            self.values.append(value)


class Running:
    """The mod in a thread of its own; without a broker it opens the one that is named."""

    def __init__(self, broker: Broker | None, params: dict[str, Any]) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ended: Ended | None = None
        self.raised: BaseException | None = None
        self._stop = threading.Event()
        self._broker = broker
        self._params = params
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def said(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in list(self.events) if name == event]

    def wait_for(self, event: str, count: int = 1, within_seconds: float = 20) -> None:
        eventually(lambda: len(self.said(event)) >= count, within_seconds=within_seconds)

    def ask_to_stop(self) -> None:
        self._stop.set()

    def stop(self, within_seconds: float = 40) -> Ended:
        self.ask_to_stop()
        return self.end(within_seconds)

    def end(self, within_seconds: float = 40) -> Ended:
        self._thread.join(within_seconds)
        if self.raised is not None:
            raise self.raised
        assert self.ended is not None, f"it still runs; it said {self.events[-5:]}"
        return self.ended

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            configuration = configuration_of(self._params, {})
            tell = Teller(self._emit, configuration.log_level, configuration.mod_name)
            wish = Wish(self._stop)
            if self._broker is None:
                self.ended = run_consumer(configuration, tell, wish)
            else:
                self.ended = run_on(self._broker, configuration, tell, wish)
        except BaseException as error:  # noqa: BLE001  the thread's edge; `end` raises it
            self.raised = error

    def _emit(self, event: str, **fields: Any) -> None:
        self.events.append((event, fields))


class ModPlace:
    """A folder for the two files, and a topic."""

    def __init__(
        self,
        folder: Path,
        broker: Broker,
        servers: str | None = None,
        *,
        topic: str = TOPIC,
        group: str = GROUP,
    ) -> None:
        self.topic, self.group = topic, group
        self.folder = folder
        self.broker = broker
        self.servers = servers or "localhost:9092"
        self._given = broker if servers is None else None
        self.processed = Processed()
        self.backup = folder / "backup.csv"
        self.letters_file = folder / "letters.csv"
        self._runs: list[Running] = []

    def create(self, topic: str | None = None, partitions: int = 1) -> None:
        self.broker.admin().create_topic(TopicSpec(topic or self.topic, partitions))

    def produce(
        self, values: Iterable[bytes | None], topic: str | None = None, **fields: Any
    ) -> None:
        producer = self.broker.producer()
        for value in values:
            producer.send(Record(value, topic=topic or self.topic, **fields))
        assert [report.error for report in producer.close(30) if report.error] == []

    def start(self, processor: Callable[..., Any] | None = None, **params: Any) -> Running:
        given = {
            "bootstrap_servers": self.servers,
            "topics": [self.topic],
            "group_id": self.group,
            "processor_callable": processor or self.processed,
            "auto_offset_reset": "earliest",
            "backup_path": str(self.backup),
            "dlq_path": str(self.letters_file),
            "worker_count": 4,
            "poll_timeout_ms": 100,
            "csv_flush_interval_seconds": 1,
        }
        self._runs.append(Running(self._given, given | params))
        return self._runs[-1]

    @contextmanager
    def running(self, *arguments: Any, **params: Any):
        run = self.start(*arguments, **params)
        yield run
        run.stop()

    def run_until(self, count: int, **params: Any) -> Ended:
        """Until so many have been processed in all."""
        run = self.start(**params)
        self.wait_for(count)
        return run.stop()

    def wait_for(self, count: int, within_seconds: float = 20) -> None:
        eventually(lambda: len(self.processed.values) >= count, within_seconds=within_seconds)

    def committed(
        self, partition: int = 0, topic: str | None = None, group: str | None = None
    ) -> int | None:
        committed = committed_of(self.broker.admin(), group or self.group)
        return committed.get(TopicPartition(topic or self.topic, partition))

    @property
    def rows(self) -> list[str]:
        """Of the backup, without its head."""
        return self.backup.read_text().splitlines()[1:] if self.backup.exists() else []

    @property
    def letters(self):
        return read_letters(self.letters_file).letters if self.letters_file.exists() else []

    def close(self) -> None:
        self.processed.may_go_on.set()
        for run in self._runs:
            run.ask_to_stop()
        for run in self._runs:
            run._thread.join(15)
        self.broker.close()
