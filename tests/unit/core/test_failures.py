import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core import failures
from forebay.core.errors import AccessDenied, Full, RecordTooLarge, Unavailable
from forebay.core.failures import Failure, category_of, is_tried_again, reason_of


class Throttled(Exception):
    category = "throttled"


@pytest.mark.parametrize(
    ("error", "category", "again"),
    [
        (TimeoutError(), "transient", True),
        (ConnectionResetError(), "transient", True),
        (Unavailable("x"), "transient", True),
        (Full("x"), "transient", True),
        (AccessDenied("x"), "auth", True),
        (RecordTooLarge("x"), "permanent", False),
        (ValueError("x"), "unknown", True),
        (Throttled(), "throttled", False),
    ],
)
def test_an_error_is_tried_again_unless_it_can_never_pass(error, category, again):
    assert category_of(error) == category
    assert is_tried_again(category) is again


@pytest.mark.parametrize("final", ["timeout", "undecodable", "exhausted", "killer", "nonsense"])
def test_what_the_engine_gives_up_is_not_tried_again(final):
    assert not is_tried_again(getattr(failures, final.upper()))


@given(reason=st.text(max_size=5_000), stack=st.text(max_size=9_000))
def test_a_failure_is_bounded_and_keeps_the_start_of_its_reason_and_the_end_of_its_stack(
    reason, stack
):
    stack *= 10
    failure = Failure("unknown", reason, "E", stack)
    assert reason.startswith(failure.reason)
    assert stack.endswith(failure.stack)
    assert len(failure.reason) <= 1_024
    assert len(failure.stack) <= 65_536


@pytest.mark.parametrize(
    "other",
    [
        "order 7 of 'bob' at 0x7fff was refused",
        'order 123 of "x" at 0x1 was refused',
    ],
)
def test_failures_with_one_cause_have_one_fingerprint(other):
    first = Failure("unknown", "order 12 of 'alice' at 0xdeadbeef was refused", "E")
    assert first.fingerprint("charge") == Failure("unknown", other, "E").fingerprint("charge")


@pytest.mark.parametrize("changed", [("auth", "busy", "E"), ("unknown", "idle", "E")])
def test_failures_with_another_cause_have_another_fingerprint(changed):
    first = Failure("unknown", "busy", "E")
    assert first.fingerprint("charge") != Failure(*changed).fingerprint("charge")
    assert first.fingerprint("charge") != first.fingerprint("refund")


def test_a_sentence_of_ours_speaks_for_itself_and_anothers_needs_its_class():
    assert reason_of(Unavailable("The bank is closed.")) == "The bank is closed."
    assert reason_of(KeyError("total")) == "KeyError: 'total'"
    assert reason_of(ValueError()) == "ValueError"


def test_an_error_that_cannot_be_told_is_told_by_its_class():
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Mute" in reason_of(Mute())
