import pytest

from forebay.core.batches import BatchRule
from forebay.core.errors import InvalidRequest

RULE = BatchRule(records=100, seconds=5.0, records_max=200, bytes_max=1_000)


@pytest.mark.parametrize(
    ("records", "bytes_held", "age", "is_due"),
    [
        (0, 0, 99, False),
        (1, 10, 4.9, False),
        (1, 10, 5.0, True),
        (99, 10, 0, False),
        (100, 10, 0, True),
        (1, 1_000, 0, True),
    ],
)
def test_a_batch_is_due_when_it_is_full_or_old_and_not_empty(records, bytes_held, age, is_due):
    assert RULE.is_due(records, bytes_held, age) is is_due


@pytest.mark.parametrize(
    ("records", "bytes_held", "has_room"),
    [(0, 0, True), (199, 999, True), (200, 0, False), (0, 1_000, False)],
)
def test_a_batch_that_waits_grows_up_to_its_maximum(records, bytes_held, has_room):
    assert RULE.has_room(records, bytes_held) is has_room


@pytest.mark.parametrize("wrong", [{"records": 0}, {"records": 5_001}, {"seconds": -0.1}])
def test_a_rule_that_could_never_cut_a_batch_is_refused(wrong):
    with pytest.raises(InvalidRequest, match="batch"):
        BatchRule(**wrong)
