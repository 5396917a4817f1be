from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.envelope import AttemptNote
from forebay.engine.standing import DEAD_LETTERED, NOTE, Telling, stand, telling_from

KINDS = [DEAD_LETTERED, NOTE, "replaying", "open_again", "resolved", "discarded"]
TELLINGS = st.builds(
    Telling,
    letter_id=st.just("7f3a"),
    kind=st.sampled_from(KINDS),
    replay_number=st.integers(0, 2),
    replay_id=st.sampled_from(["", "r-1", "r-2"]),
    at_ms=st.integers(0, 3),
    actor=st.sampled_from(["", "ann"]),
    reason=st.sampled_from(["", "first", "second"]),
    first_failed_ms=st.integers(0, 3),
    history=st.lists(
        st.builds(
            AttemptNote,
            st.integers(1, 2),
            st.integers(0, 3),
            st.just("transient"),
            st.just("busy"),
        ),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(TELLINGS, max_size=6).flatmap(lambda t: st.tuples(st.just(t), st.permutations(t))))
def test_the_order_of_what_was_told_decides_nothing(told):
    one, other = told
    assert stand(one) == stand(other)


@given(TELLINGS)
def test_a_telling_comes_back_from_its_row(telling):
    assert telling_from(telling.row) == telling


def test_without_a_letter_there_is_no_entry():
    assert stand([Telling("7f3a", kind) for kind in KINDS if kind != DEAD_LETTERED]) is None


@pytest.mark.parametrize("earlier", [0, 1])
def test_the_first_failure_is_the_earliest_of_all_letters(earlier):
    letters = [Telling("7f3a", DEAD_LETTERED, n, first_failed_ms=9) for n in range(2)]
    letters[earlier] = replace(letters[earlier], first_failed_ms=3)
    standing = stand(letters)
    assert standing is not None
    assert standing.first_failed_ms == 3
