import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.errors import InvalidName, InvalidRequest
from forebay.core.topics import TopicSpec, check_collision, check_name, check_partitions, check_spec

LEGAL = string.ascii_letters + string.digits + "._-"
legal_names = st.text(LEGAL, min_size=1, max_size=249).filter(lambda name: name not in {".", ".."})


@given(legal_names)
def test_a_name_of_legal_characters_is_accepted(name):
    check_name(name)


@given(st.text(min_size=1, max_size=20).filter(lambda name: set(name) - set(LEGAL)))
def test_a_name_with_one_illegal_character_is_refused(name):
    with pytest.raises(InvalidName):
        check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "trailing\n", "sl/ash", "ümlaut"])
def test_names_that_a_folder_cannot_have_are_refused(name):
    with pytest.raises(InvalidName):
        check_name(name)


def test_a_long_name_is_shortened_in_its_message():
    with pytest.raises(InvalidName, match=r"has 300 characters; use at most 249") as refused:
        check_name("a" * 300)
    assert len(str(refused.value)) < 120


@pytest.mark.parametrize("partitions", [0, -1, 10_001])
def test_a_topic_has_at_least_one_partition_and_not_too_many(partitions):
    with pytest.raises(InvalidRequest, match="use 1 to 10000"):
        check_partitions("orders", partitions)


@given(legal_names)
def test_a_name_does_not_collide_with_itself(name):
    check_collision(name, [name, "unrelated"])


@given(st.text("ab", min_size=1), st.text("ab", min_size=1))
def test_names_that_differ_only_in_dot_and_underscore_collide(left, right):
    with pytest.raises(InvalidName, match="collides"):
        check_collision(f"{left}.{right}", [f"{left}_{right}"])


def test_a_spec_is_checked_for_name_partitions_and_collision():
    check_spec(TopicSpec("orders", 3), ["orders", "receipts"])
    with pytest.raises(InvalidName):
        check_spec(TopicSpec("or ders"), [])
    with pytest.raises(InvalidRequest):
        check_spec(TopicSpec("orders", 0), [])
    with pytest.raises(InvalidName):
        check_spec(TopicSpec("or.ders"), ["or_ders"])
