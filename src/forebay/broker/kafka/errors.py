"""The client's error codes as our typed errors, with what a person can do about each."""

# ruff: noqa: SLF001  librdkafka's own error codes begin with an underscore

from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import KafkaError

from forebay.core.errors import (
    AccessDenied,
    Fenced,
    ForebayError,
    Full,
    GroupActive,
    InvalidName,
    InvalidRequest,
    OutcomeUnknown,
    RecordTooLarge,
    TopicExists,
    Unavailable,
    UnknownGroup,
    UnknownPartition,
    UnknownTopic,
    Unusable,
)


class Meaning(NamedTuple):
    kind: type[ForebayError]
    what_to_do: str


_CREDENTIALS = Meaning(
    AccessDenied, "Look at the user name, password or token, and at sasl_mechanism."
)
_MOVED_ON = Meaning(
    Fenced, "The group gave the partition to another member; drop what was read of it."
)
_UNKNOWN_TOPIC = Meaning(UnknownTopic, "Nothing is created by itself; create the topic first.")
_TOO_LARGE = Meaning(
    RecordTooLarge, "Send smaller records, or raise max.message.bytes of the topic."
)
_NO_ANSWER = Meaning(
    OutcomeUnknown, "It may or may not be stored. Look at the broker before sending it again."
)
_REFUSED = Meaning(InvalidRequest, "Change the request; it will not pass as it is.")
_INCOMPATIBLE = Meaning(Unusable, "Look at the versions and settings of broker and group.")
_PASSES = Meaning(Unavailable, "It may pass by itself; try again.")

_MEANINGS: Mapping[int, Meaning] = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: _CREDENTIALS,
    KafkaError.ILLEGAL_SASL_STATE: _CREDENTIALS,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Meaning(
        AccessDenied, "Grant Describe, and Read or Write, on the topic to this principal."
    ),
    KafkaError.GROUP_AUTHORIZATION_FAILED: Meaning(
        AccessDenied, "Grant Read on the group to this principal."
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Meaning(
        AccessDenied, "Grant the operation on the cluster to this principal."
    ),
    KafkaError._SSL: Meaning(
        Unusable, "Look at ca_file, certificate_file, key_file, and at the port's protocol."
    ),
    KafkaError._FATAL: Meaning(Unusable, "The client cannot go on; start the process again."),
    KafkaError._INVALID_ARG: _INCOMPATIBLE,
    KafkaError.UNSUPPORTED_VERSION: _INCOMPATIBLE,
    KafkaError._UNSUPPORTED_FEATURE: _INCOMPATIBLE,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: _INCOMPATIBLE,
    KafkaError.INVALID_SESSION_TIMEOUT: _INCOMPATIBLE,
    KafkaError.GROUP_MAX_SIZE_REACHED: _INCOMPATIBLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART: _UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_ID: _UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION: Meaning(
        UnknownPartition, "Use one of the topic's partitions; they count from 0."
    ),
    KafkaError.GROUP_ID_NOT_FOUND: Meaning(
        UnknownGroup, "A group exists from its first member or commit on."
    ),
    KafkaError.TOPIC_ALREADY_EXISTS: Meaning(TopicExists, "Use it, or choose another name."),
    KafkaError.TOPIC_EXCEPTION: Meaning(InvalidName, "Choose another name."),
    KafkaError.INVALID_GROUP_ID: Meaning(InvalidName, "Choose another name."),
    KafkaError.MSG_SIZE_TOO_LARGE: _TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE: _TOO_LARGE,
    KafkaError.INVALID_PARTITIONS: _REFUSED,
    KafkaError.INVALID_REPLICATION_FACTOR: _REFUSED,
    KafkaError.INVALID_CONFIG: _REFUSED,
    KafkaError.INVALID_REQUEST: _REFUSED,
    KafkaError.INVALID_TIMESTAMP: _REFUSED,
    KafkaError.INVALID_RECORD: _REFUSED,
    KafkaError.POLICY_VIOLATION: _REFUSED,
    KafkaError.TOPIC_DELETION_DISABLED: _REFUSED,
    KafkaError.OFFSET_METADATA_TOO_LARGE: Meaning(
        InvalidRequest, "Write less metadata into the commit; the broker limits it."
    ),
    KafkaError.NON_EMPTY_GROUP: Meaning(GroupActive, "Stop the group's members first."),
    KafkaError.ILLEGAL_GENERATION: _MOVED_ON,
    KafkaError.UNKNOWN_MEMBER_ID: _MOVED_ON,
    KafkaError.FENCED_INSTANCE_ID: _MOVED_ON,
    KafkaError.FENCED_MEMBER_EPOCH: _MOVED_ON,
    KafkaError.STALE_MEMBER_EPOCH: _MOVED_ON,
    KafkaError._FENCED: _MOVED_ON,
    KafkaError._ASSIGNMENT_LOST: _MOVED_ON,
    KafkaError._QUEUE_FULL: Meaning(Full, "Poll for reports, then send again."),
    KafkaError._MSG_TIMED_OUT: _NO_ANSWER,
    KafkaError._PURGE_QUEUE: _NO_ANSWER,
    KafkaError._PURGE_INFLIGHT: _NO_ANSWER,
    KafkaError.REQUEST_TIMED_OUT: _NO_ANSWER,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _NO_ANSWER,
}


def meaning_of(error: KafkaError) -> Meaning:
    known = _MEANINGS.get(error.code())
    if known is not None:
        return known
    return _MEANINGS[KafkaError._FATAL] if error.fatal() else _PASSES


def translate(error: KafkaError, subject: str) -> ForebayError:
    """`subject` names what was tried and on what, as the beginning of a sentence."""
    meaning = meaning_of(error)
    said = error.str().rstrip(".")
    return meaning.kind(f"{subject} failed: {said}. {meaning.what_to_do}")
