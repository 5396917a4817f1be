import time
from collections.abc import Callable, Collection, Mapping

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin._group import ConsumerGroupDescription, MemberDescription
from confluent_kafka.admin._topic import TopicDescription as ClientTopicDescription
from confluent_kafka.cimpl import NewPartitions, NewTopic

from forebay.broker.kafka.errors import translate
from forebay.broker.kafka.questions import (
    ANSWER_SECONDS,
    OFFSETS,
    Questions,
    client_partition,
    partition_of,
)
from forebay.broker.port import (
    GroupDescription,
    GroupMember,
    GroupPosition,
    GroupSummary,
    TopicDescription,
    Watermarks,
)
from forebay.core.errors import (
    CommitFailed,
    Fenced,
    ForebayError,
    GroupActive,
    InvalidRequest,
    OffsetOutOfRange,
    OutcomeUnknown,
    TopicExists,
    UnknownGroup,
    UnknownTopic,
    Unusable,
)
from forebay.core.records import Offset, TopicPartition
from forebay.core.topics import TopicSpec, check_name, check_partitions, check_spec

_LOOK_AGAIN_SECONDS = 0.02
_NO_ID = "A" * 22


class KafkaAdmin:
    """Names that collide in '.' and '_' are refused by Kafka itself."""

    def __init__(self, questions: Questions, *, may_create_topics: bool) -> None:
        self._questions = questions
        self._may_create_topics = may_create_topics

    def create_topic(self, spec: TopicSpec, *, exists_ok: bool = False) -> None:
        check_spec(spec, existing=())
        if not self._may_create_topics:
            self._expect_topic(spec.name, exists_ok=exists_ok)
            return
        try:
            self._questions.tell(
                f"Creating topic {spec.name!r}",
                lambda client: client.create_topics([_new_topic(spec)])[spec.name],
            )
        except TopicExists:
            if not exists_ok:
                raise
        self._wait_until(f"Topic {spec.name} gets leaders", lambda: self._is_led(spec.name, 1))

    def describe_topics(self, names: Collection[str] | None = None) -> list[TopicDescription]:
        wanted = sorted(self._questions.metadata().topics if names is None else set(names))
        described = [self._describe(name, must_exist=names is not None) for name in wanted]
        return [_topic_description(*found) for found in described if found is not None]

    def extend_topic(self, name: str, partitions: int) -> None:
        check_partitions(name, partitions)
        present = len(self._questions.topic(name).partitions)
        if partitions <= present:
            raise InvalidRequest(
                f"Topic {name} has {present} partitions and cannot be given {partitions}: topics "
                f"only grow."
            )
        self._questions.tell(
            f"Extending topic {name!r}",
            lambda client: client.create_partitions([NewPartitions(name, partitions)])[name],
        )
        self._wait_until(f"Topic {name} gets leaders", lambda: self._is_led(name, partitions))

    def delete_topic(self, name: str) -> None:
        check_name(name)
        self._questions.tell(
            f"Deleting topic {name!r}", lambda client: client.delete_topics([name])[name]
        )
        self._wait_until(f"Topic {name} goes", lambda: self._is_gone(name))

    def trim(self, before: Mapping[TopicPartition, Offset]) -> dict[TopicPartition, Offset]:
        if not before:
            return {}
        watermarks = self._questions.watermarks(before)
        for at, offset in before.items():
            if not 0 <= offset <= watermarks[at].end:
                raise OffsetOutOfRange(at, offset, *watermarks[at])
        places = [client_partition(at, offset) for at, offset in before.items()]
        trimmed = self._questions.ask_all(
            "Trimming records", lambda client: client.delete_records(places)
        )
        return {partition_of(place): result.low_watermark for place, result in trimmed.items()}

    def watermarks(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Watermarks]:
        return self._questions.watermarks(partitions)

    def list_groups(self) -> list[GroupSummary]:
        listed = self._questions.ask("Listing groups", lambda client: client.list_consumer_groups())
        for error in listed.errors or []:
            raise translate(error.args[0], "Listing groups") from error
        names = sorted(group.group_id for group in listed.valid or [])
        described = (self._describe_group(name) for name in names)
        return [
            GroupSummary(group.group_id, bool(group.members), len(group.members))
            for group in described
            if group is not None
        ]

    def describe_group(self, name: str) -> GroupDescription:
        found = self._describe_group(name)
        if found is None:
            raise UnknownGroup(
                f"There is no group {name!r}. A group exists from its first member or commit on."
            )
        members = tuple(_member(member) for member in found.members)
        assigned = [at for member in members for at in member.partitions]
        return GroupDescription(name, bool(members), members, self._positions(name, assigned))

    def reset_offsets(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        if not offsets:
            return
        for at, offset in offsets.items():
            if offset not in OFFSETS:
                raise InvalidRequest(f"Group {group!r} cannot resume at offset {offset} of {at}.")
        found = self._describe_group(group)
        if found is not None and found.members:
            raise _still_active(group)
        places = [client_partition(at, offset) for at, offset in offsets.items()]
        request = ConsumerGroupTopicPartitions(group, places)
        altered = self._questions.ask(
            f"Setting the offsets of group {group!r}",
            lambda client: client.alter_consumer_group_offsets([request])[group],
        )
        _raise_failures(group, altered.topic_partitions)

    def _expect_topic(self, name: str, *, exists_ok: bool) -> None:
        try:
            self._questions.topic(name)
        except UnknownTopic:
            raise Unusable(
                f"Topic {name} cannot be created: this broker takes no new topics from Kafka "
                f"clients (may_create_topics is off). Create it with the broker's own tools."
            ) from None
        if not exists_ok:
            raise TopicExists(f"Topic {name} exists. Use it, or choose another name.")

    def _is_led(self, name: str, partitions: int) -> bool:
        try:
            found = self._questions.topic(name).partitions.values()
        except UnknownTopic:
            return False
        return len(found) >= partitions and all(partition.leader >= 0 for partition in found)

    def _is_gone(self, name: str) -> bool:
        return name not in self._questions.metadata().topics

    def _wait_until(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while not done():
            if time.monotonic() > deadline:
                raise OutcomeUnknown(f"{what}: not yet after {ANSWER_SECONDS:g} s.")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _describe(
        self, name: str, *, must_exist: bool
    ) -> tuple[ClientTopicDescription, dict[str, str]] | None:
        check_name(name)
        try:
            found = self._questions.ask(
                f"Looking up topic {name!r}",
                lambda client: client.describe_topics(TopicCollection([name]))[name],
            )
        except UnknownTopic:
            if must_exist:
                raise
            return None
        if found.is_internal and not must_exist:
            return None
        return found, self._questions.settings_of(name)

    def _describe_group(self, name: str) -> ConsumerGroupDescription | None:
        try:
            found = self._questions.ask(
                f"Looking up group {name!r}",
                lambda client: client.describe_consumer_groups([name])[name],
            )
        except UnknownGroup:
            return None
        dead = found.state == ConsumerGroupState.DEAD and not found.members
        return None if dead else found

    def _positions(
        self, group: str, assigned: Collection[TopicPartition]
    ) -> tuple[GroupPosition, ...]:
        committed = self._questions.committed(group)
        topics = self._questions.metadata().topics
        known = sorted(
            at
            for at in {*committed, *assigned}
            if at.topic in topics and at.partition in topics[at.topic].partitions
        )
        watermarks = self._questions.watermarks(known)
        return tuple(GroupPosition(at, committed.get(at), watermarks[at]) for at in known)


def _new_topic(spec: TopicSpec) -> NewTopic:
    limits = {"retention.ms": spec.retention_ms, "retention.bytes": spec.retention_bytes}
    return NewTopic(
        spec.name,
        spec.partitions,
        spec.replication or -1,
        config={name: str(value) for name, value in limits.items() if value is not None},
    )


def _topic_description(
    topic: ClientTopicDescription, settings: Mapping[str, str]
) -> TopicDescription:
    return TopicDescription(
        topic.name,
        _identity(topic),
        len(topic.partitions),
        _limit(settings.get("retention.ms")),
        _limit(settings.get("retention.bytes")),
        min((len(partition.replicas) for partition in topic.partitions), default=1),
    )


def _identity(topic: ClientTopicDescription) -> str:
    """A broker without topic ids, such as Event Hubs, answers zero: then the name must do."""
    identity = str(topic.topic_id)
    return topic.name if identity == _NO_ID else identity


def _limit(setting: str | None) -> int | None:
    number = -1 if setting is None else int(setting)
    return None if number < 0 else number


def _member(member: MemberDescription) -> GroupMember:
    held = member.assignment.topic_partitions if member.assignment else []
    partitions = tuple(sorted(partition_of(place) for place in held))
    return GroupMember(member.member_id, member.client_id, member.host, partitions)


def _still_active(group: str) -> GroupActive:
    return GroupActive(
        f"The offsets of group {group!r} stay as they are: it has members, which would write over "
        f"them. Stop them first."
    )


def _raise_failures(group: str, altered: Collection[ClientPartition]) -> None:
    failures: dict[TopicPartition, ForebayError] = {}
    for place in altered:
        at = partition_of(place)
        if place.error is not None:
            failures[at] = translate(place.error, f"Setting the offset of group {group!r} for {at}")
    if any(isinstance(failure, Fenced) for failure in failures.values()):
        raise _still_active(group)
    if failures:
        raise CommitFailed(failures)
