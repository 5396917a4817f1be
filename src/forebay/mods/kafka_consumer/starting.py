"""What is looked at and said before the first message: topics, starts, stops, dev mode."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forebay.broker.port import Admin
from forebay.broker.settings import EmbeddedSettings
from forebay.core.errors import ForebayError, Unavailable, UnknownTopic
from forebay.core.records import Offset, TopicPartition
from forebay.engine.dev_mode import positions_by_hand
from forebay.engine.idle import committed_of
from forebay.engine.routes import Route
from forebay.mods.kafka_consumer.configuration import Configuration
from forebay.mods.kafka_consumer.seen import named
from forebay.mods.kafka_consumer.telling import Teller

LOOK_AGAIN_SECONDS = 1.0

_WITHOUT_EFFECT = (
    *("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms", "isolation_level"),
)


@dataclass(frozen=True, slots=True)
class Start:
    configuration: Configuration
    admin: Admin
    tell: Teller

    def announce(self) -> None:
        configuration = self.configuration
        self.tell(
            "mod.starting",
            bootstrap_servers=configuration.bootstrap_servers,
            topics=configuration.topics,
            group_id=configuration.group_id,
            worker_count=configuration.worker_count,
            dev_mode=configuration.dev_mode,
            stop_at_offset=named(configuration.stop_at_offset) or None,
        )
        if configuration.dev_mode:
            self.tell("mod.dev_mode_enabled")
        if configuration.stop_at_offset:
            self.tell(
                "mod.stop_at_offset_configured",
                targets=named(configuration.stop_at_offset),
                mode=configuration.stop_at_offset_mode,
            )
        unused = [name for name in _WITHOUT_EFFECT if name in configuration.given]
        if unused and isinstance(configuration.settings.broker, EmbeddedSettings):
            self.tell("mod.no_effect", parameters=unused)

    def look_at_topics(self) -> None:
        """What cannot be asked now is not held against the start: the consumer waits for it."""
        try:
            there = [topic for topic in self.configuration.topics if self._exists(topic)]
            if self.configuration.auto_offset_reset == "latest":
                self._tell_unread(there)
        except ForebayError as error:
            self.tell("mod.waiting", reason=str(error))

    def positions(
        self, route: Route, is_to_end: Callable[[], bool]
    ) -> Mapping[TopicPartition, Offset] | None:
        """Where dev mode reads, without joining the group. None if it is to end before."""
        told = ""
        while not is_to_end():
            try:
                return positions_by_hand(self.admin, route, self.configuration.auto_offset_reset)
            except (Unavailable, UnknownTopic) as error:
                if str(error) != told:
                    told = str(error)
                    self.tell("mod.waiting", reason=told)
            time.sleep(LOOK_AGAIN_SECONDS)
        return None

    def _exists(self, topic: str) -> bool:
        try:
            self.admin.describe_topics([topic])
        except UnknownTopic:
            self.tell("mod.topic_missing", topic=topic)
            return False
        return True

    def _tell_unread(self, topics: list[str]) -> None:
        committed = committed_of(self.admin, self.configuration.group_id)
        fresh = [topic for topic in topics if topic not in {at.topic for at in committed}]
        if not fresh:
            return
        places = [
            TopicPartition(topic.name, number)
            for topic in self.admin.describe_topics(fresh)
            for number in range(topic.partitions)
        ]
        unread = sum(end - low for low, end in self.admin.watermarks(places).values())
        if unread:
            group = self.configuration.group_id
            self.tell("mod.starts_at_end", group_id=group, topics=fresh, messages=unread)
