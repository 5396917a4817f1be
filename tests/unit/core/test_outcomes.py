from dataclasses import FrozenInstanceError, fields

import pytest

from forebay.core.outcomes import DONE, EMITTING, OUTCOMES, Done, Reject, Retry, Skip


@pytest.mark.parametrize("outcome", [Done({"out": b"1"}), Retry("later"), Reject("no"), Skip("x")])
def test_an_outcome_is_a_value_that_nobody_changes_later(outcome):
    assert isinstance(outcome, OUTCOMES)
    with pytest.raises(FrozenInstanceError):
        setattr(outcome, fields(outcome)[0].name, "another")
    assert isinstance(outcome, EMITTING) is hasattr(outcome, "emit")


def test_a_retry_uses_an_attempt_up_and_is_taken_for_a_blip_unless_it_says_otherwise():
    retry = Retry("busy")
    assert (retry.counts, retry.category, retry.after) == (True, "transient", None)
    assert Reject("no").category == "permanent"
    assert Done() == DONE
