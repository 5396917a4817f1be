import pytest

from forebay.cli.ages import ago, rough_duration


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (4_280, "4 s"),
        (119_999, "1 m"),
        (3_600_000, "1 h"),
        (2.9 * 86_400_000, "2 d"),
        (20_000 * 86_400_000, "20,000 d"),
    ],
)
def test_an_age_is_told_in_one_unit_and_never_made_longer(milliseconds, told):
    assert rough_duration(milliseconds) == told


def test_what_lies_in_the_future_is_not_told_as_negative():
    assert ago(10_000, 5_000) == "0 s ago"
