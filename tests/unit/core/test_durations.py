import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.durations import seconds, written
from forebay.core.errors import InvalidRequest


@given(milliseconds=st.integers(1, 10**12))
def test_what_is_written_reads_back_the_same(milliseconds):
    duration = milliseconds / 1000
    assert seconds(written(duration)) == pytest.approx(duration, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "value"),
    [("200ms", 0.2), ("5s", 5), ("1.5m", 90), (" 2h ", 7_200), ("1d", 86_400), (3, 3), (0, 0)],
)
def test_people_write_durations_as_they_speak(text, value):
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "wrong", ["", "5", "5 weeks", "-5s", "5s5s", "1e3s", -1, True, float("inf"), float("nan"), None]
)
def test_what_is_no_duration_is_refused_with_examples(wrong):
    with pytest.raises(InvalidRequest, match="such as"):
        seconds(wrong)


@pytest.mark.parametrize(
    ("value", "text"), [(300, "5m"), (3_600, "1h"), (90, "90s"), (86_400, "1d"), (0.25, "250ms")]
)
def test_the_shortest_exact_way_is_taken(value, text):
    assert written(value) == text
