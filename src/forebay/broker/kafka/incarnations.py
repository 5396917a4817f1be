"""Tells a topic from another of the same name: offsets of the one mean nothing in the other."""

import time
from collections.abc import Collection
from concurrent.futures import Future

from confluent_kafka import KafkaException
from confluent_kafka.admin._topic import TopicDescription

from forebay.broker.kafka.questions import Questions


class Incarnations:
    """The client goes on at its old offset in a topic that was deleted and made again."""

    def __init__(self, questions: Questions, look_every_seconds: float) -> None:
        self._questions = questions
        self._look_every_seconds = look_every_seconds
        self._next_look = 0.0
        self._known: dict[str, str] = {}
        self._asked: dict[str, Future[TopicDescription]] = {}

    def replaced(self, topics: Collection[str]) -> list[str]:
        """Those that are others than at the last look. Does not wait for the broker."""
        answered = [name for name, answer in self._asked.items() if answer.done()]
        replaced = [name for name in answered if self._is_another(name, self._asked.pop(name))]
        now = time.monotonic()
        if now >= self._next_look and topics and not self._asked:
            self._next_look = now + self._look_every_seconds
            self._asked = self._questions.describe(topics)
        return replaced

    def _is_another(self, name: str, answer: Future[TopicDescription]) -> bool:
        """A topic that is gone, or a broker that does not tell, says nothing."""
        try:
            identity = str(answer.result().topic_id)
        except KafkaException:
            return False
        known, self._known[name] = self._known.get(name, identity), identity
        return known != identity
