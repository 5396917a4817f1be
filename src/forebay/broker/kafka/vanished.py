import time
from collections.abc import Iterable

from forebay.broker.kafka.questions import Questions
from forebay.core.errors import UnknownTopic
from forebay.core.records import TopicPartition


class VanishedTopics:
    """The client is silent for ever when a topic that it reads by hand is deleted."""

    def __init__(self, questions: Questions, look_every_seconds: float) -> None:
        self._questions = questions
        self._look_every_seconds = look_every_seconds
        self._next_look = time.monotonic() + look_every_seconds
        self._told: set[str] = set()

    def check(self, partitions: Iterable[TopicPartition]) -> None:
        """Now and then asks the broker; raises UnknownTopic once for each that is gone."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + self._look_every_seconds
        for name in {at.topic for at in partitions} - self._told:
            try:
                self._questions.topic(name)
            except UnknownTopic:
                self._told.add(name)
                raise
