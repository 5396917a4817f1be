from datetime import UTC, datetime

import pytest

from forebay.outbound.answers import kind_of_status, retry_after_seconds
from forebay.outbound.errors import CATEGORIES

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp()


def test_every_status_has_a_kind_with_a_category():
    assert {kind_of_status(status) for status in range(1_000)} <= CATEGORIES.keys()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("100000", 3600.0),
        ("Mon, 05 Jan 2026 12:01:00 GMT", 60.0),
        ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("Tue, 06 Jan 2026 12:00:00 GMT", 3600.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_when_to_come_again_is_a_number_or_a_date_within_an_hour(header, seconds):
    assert retry_after_seconds(header, NOW) == seconds
