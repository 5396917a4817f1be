import time
from contextlib import ExitStack
from functools import cached_property
from weakref import WeakSet

from confluent_kafka import libversion, version
from confluent_kafka.admin._metadata import ClusterMetadata

from forebay.broker.kafka.admin import KafkaAdmin
from forebay.broker.kafka.cluster import Cluster
from forebay.broker.kafka.connection import Connection
from forebay.broker.kafka.consumer import KafkaConsumer
from forebay.broker.kafka.producer import KafkaProducer
from forebay.broker.kafka.questions import Questions
from forebay.broker.port import BrokerDescription, Finding
from forebay.broker.settings import ConsumerSettings, KafkaSettings, ProducerSettings
from forebay.core.errors import AccessDenied, Closed, ForebayError
from forebay.observability.catalogue import Emit


class KafkaBroker:
    """Apache Kafka, or what speaks its protocol."""

    def __init__(self, settings: KafkaSettings, emit: Emit) -> None:
        connection = Connection(settings.bootstrap_servers, emit)
        self._settings = settings
        self._questions = Questions(settings, connection)
        self._cluster = Cluster(settings, connection, self._questions, emit)
        self._clients: WeakSet[KafkaProducer | KafkaConsumer] = WeakSet()
        self._closed = False

    def describe(self) -> BrokerDescription:
        """Does not fail when nobody answers: the start line is printed all the same."""
        address = self._settings.bootstrap_servers
        try:
            cluster = self._questions.metadata()
        except ForebayError:
            return BrokerDescription("kafka", address, f"kafka {address} (not reachable now)")
        sentence = f"kafka {address} ({_nodes(cluster)})"
        return BrokerDescription("kafka", cluster.cluster_id or address, sentence)

    def diagnose(self) -> list[Finding]:
        return [self._reachable(), self._versions()]

    @property
    def record_bytes_max(self) -> int:
        return self._settings.record_bytes_max

    def admin(self) -> KafkaAdmin:
        self._check_open()
        return self._admin

    def producer(self, settings: ProducerSettings | None = None) -> KafkaProducer:
        self._check_open()
        producer = KafkaProducer(self._cluster, settings or ProducerSettings())
        self._clients.add(producer)
        return producer

    def consumer(
        self, group: str | None, settings: ConsumerSettings | None = None
    ) -> KafkaConsumer:
        self._check_open()
        consumer = KafkaConsumer(self._cluster, group, settings or ConsumerSettings())
        self._clients.add(consumer)
        return consumer

    def close(self) -> None:
        self._closed = True
        with ExitStack() as one_after_another:
            for client in list(self._clients):
                one_after_another.callback(client.close)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("This broker is closed. Open it again.")

    @cached_property
    def _admin(self) -> KafkaAdmin:
        return KafkaAdmin(self._questions, may_create_topics=self._settings.may_create_topics)

    def _reachable(self) -> Finding:
        address = f"kafka://{self._settings.bootstrap_servers}"
        asked = time.monotonic()
        try:
            cluster = self._questions.metadata()
        except AccessDenied as error:
            return Finding("broker", ok=False, detail=str(error), do="Mend the credentials.")
        except ForebayError as error:
            do = "Start the broker, or set the right address and protocol."
            return Finding("broker", ok=False, detail=str(error), do=do)
        answered_ms = (time.monotonic() - asked) * 1000
        detail = f"{address} answers in {answered_ms:.0f} ms, {_nodes(cluster)}"
        return Finding("broker", ok=True, detail=detail)

    def _versions(self) -> Finding:
        detail = f"confluent-kafka {version()}, librdkafka {libversion()[0]}"
        return Finding("client", ok=True, detail=detail)


def _nodes(cluster: ClusterMetadata) -> str:
    nodes = len(cluster.brokers)
    return f"{nodes} {'node' if nodes == 1 else 'nodes'}"
