from dataclasses import dataclass

from forebay.broker.kafka.connection import Connection
from forebay.broker.kafka.questions import Questions
from forebay.broker.settings import KafkaSettings
from forebay.observability.catalogue import Emit


@dataclass(frozen=True, slots=True)
class Cluster:
    """What every client of one broker shares."""

    settings: KafkaSettings
    connection: Connection
    questions: Questions
    emit: Emit
