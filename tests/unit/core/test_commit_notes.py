import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.commit_notes import CommitNote, read_note

NUMBERS = st.integers(0, 2**63)


@given(above=NUMBERS, partitions=NUMBERS, since_ms=NUMBERS)
def test_a_note_reads_back_as_it_was_written_and_is_small(above, partitions, since_ms):
    note = CommitNote(above, partitions, since_ms)
    assert read_note(note.written()) == note
    assert len(note.written()) < 200


@given(metadata=st.text(max_size=60))
def test_what_another_client_wrote_is_no_note(metadata):
    assert read_note(metadata) is None


@pytest.mark.parametrize(
    "metadata",
    ["forebay above=-1 partitions=0 since=0", "forebay above=1 partitions=2 since=3 more", ""],
)
def test_nearly_a_note_is_none(metadata):
    assert read_note(metadata) is None


def test_a_number_without_end_is_no_note_and_raises_nothing():
    assert read_note(f"forebay above={'9' * 5_000} partitions=0 since=0") is None
