import pytest
from confluent_kafka import KafkaError

from forebay.broker.kafka.errors import translate
from forebay.core.errors import (
    AccessDenied,
    Fenced,
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

EXPECTED = {
    KafkaError._AUTHENTICATION: AccessDenied,
    KafkaError.SASL_AUTHENTICATION_FAILED: AccessDenied,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: AccessDenied,
    KafkaError.GROUP_AUTHORIZATION_FAILED: AccessDenied,
    KafkaError._SSL: Unusable,
    KafkaError.UNKNOWN_TOPIC_OR_PART: UnknownTopic,
    KafkaError._UNKNOWN_TOPIC: UnknownTopic,
    KafkaError._UNKNOWN_PARTITION: UnknownPartition,
    KafkaError.GROUP_ID_NOT_FOUND: UnknownGroup,
    KafkaError.TOPIC_ALREADY_EXISTS: TopicExists,
    KafkaError.TOPIC_EXCEPTION: InvalidName,
    KafkaError.MSG_SIZE_TOO_LARGE: RecordTooLarge,
    KafkaError.INVALID_CONFIG: InvalidRequest,
    KafkaError.OFFSET_METADATA_TOO_LARGE: InvalidRequest,
    KafkaError.NON_EMPTY_GROUP: GroupActive,
    KafkaError.ILLEGAL_GENERATION: Fenced,
    KafkaError.UNKNOWN_MEMBER_ID: Fenced,
    KafkaError.FENCED_INSTANCE_ID: Fenced,
    KafkaError._MSG_TIMED_OUT: OutcomeUnknown,
    KafkaError._PURGE_QUEUE: OutcomeUnknown,
    KafkaError._PURGE_INFLIGHT: OutcomeUnknown,
    KafkaError._QUEUE_FULL: Full,
    KafkaError.NOT_LEADER_FOR_PARTITION: Unavailable,
    KafkaError.REBALANCE_IN_PROGRESS: Unavailable,
    KafkaError._WAIT_COORD: Unavailable,
    KafkaError._TRANSPORT: Unavailable,
}


@pytest.mark.parametrize("code", EXPECTED)
def test_an_error_of_the_client_becomes_the_one_that_says_what_to_do(code):
    error = translate(KafkaError(code, "it went wrong."), "Sending to orders[0]")
    assert type(error) is EXPECTED[code]
    assert str(error).startswith("Sending to orders[0] failed: it went wrong. ")


def test_a_code_nobody_listed_may_pass_unless_the_client_says_it_is_fatal():
    assert type(translate(KafkaError(KafkaError.UNKNOWN), "Reading")) is Unavailable
    fatal = KafkaError(KafkaError.UNKNOWN, "no", fatal=True)
    assert type(translate(fatal, "Sending")) is Unusable
