import inspect
import pickle

import pytest

from forebay.core import errors
from forebay.core.errors import (
    CommitFailed,
    Fenced,
    ForebayError,
    Full,
    OffsetOutOfRange,
    OutcomeUnknown,
    Rejected,
    Unavailable,
    UnknownTopic,
)
from forebay.core.records import TopicPartition

ORDERS = TopicPartition("orders", 3)
SPECIAL = {
    OffsetOutOfRange: OffsetOutOfRange(ORDERS, 7, 10, 20),
    CommitFailed: CommitFailed({ORDERS: Fenced("given away")}),
}
EVERY_ERROR = [
    SPECIAL.get(kind) or kind("what, where, what to do")
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ForebayError)
]


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_an_error_crosses_processes_with_its_type_message_and_fields(error):
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copied), str(copied)) == (type(error), str(error))
    assert copied.__dict__.keys() == error.__dict__.keys()


def test_an_offset_out_of_range_says_where_the_log_is_and_what_to_do():
    error = SPECIAL[OffsetOutOfRange]
    assert str(error) == (
        "Offset 7 of orders[3] is outside the log, which holds 10 to 20 (exclusive). The reader "
        "stays where it is; seek to an offset in that range."
    )
    assert (error.partition, error.offset, error.low, error.high) == (ORDERS, 7, 10, 20)


def test_a_failed_commit_names_each_partition_and_why():
    error = CommitFailed({ORDERS: Fenced("given away"), ORDERS._replace(partition=4): Full("full")})
    assert str(error) == (
        "The commit failed for 2 partitions. orders[3]: given away; orders[4]: full"
    )
    assert [type(failure) for failure in error.failures.values()] == [Fenced, Full]


def test_the_branches_tell_what_may_pass_from_what_never_will():
    assert issubclass(OutcomeUnknown, Unavailable)
    assert issubclass(Full, Unavailable)
    assert issubclass(UnknownTopic, Rejected)
    assert not issubclass(Rejected, Unavailable)
    assert not issubclass(Fenced, (Rejected, Unavailable))
