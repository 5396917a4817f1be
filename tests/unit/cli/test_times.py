from datetime import UTC, datetime

import pytest

from forebay.cli.errors import WrongUse
from forebay.cli.times import duration_ms, iso, short_duration, time_ms

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("30s", 30_000), ("10m", 600_000), ("2h30m", 9_000_000), ("7d", 604_800_000), ("1.5s", 1_500)],
)
def test_durations_read_as_people_write_them(text, milliseconds):
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "10", "m", "ten minutes", "-5m", "5 moons"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(WrongUse, match="write 30s"):
        duration_ms(text)


@pytest.mark.parametrize("text", ["10m", "10m ago", "10 m ago", " 10M AGO "])
def test_a_duration_as_a_time_is_that_long_ago(text):
    assert time_ms(text, NOW) == NOW - 600_000


def test_iso_times_keep_their_zone_and_take_the_machines_without_one():
    assert time_ms("2026-11-18T09:10:00Z", NOW) == time_ms("2026-11-18T10:10:00+01:00", NOW)
    local = datetime(2026, 11, 18).astimezone()
    assert time_ms("2026-11-18", NOW) == local.timestamp() * 1_000


@pytest.mark.parametrize("text", ["blah", "", "2026-13-01", "25:00", "ago"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(WrongUse, match="is no time"):
        time_ms(text, NOW)


def test_a_timestamp_beyond_the_calendar_is_shown_as_unknown():
    moment = datetime(2026, 11, 18, 9, 10, 0, 5_000, tzinfo=UTC)
    assert iso(round(moment.timestamp() * 1_000)) == "2026-11-18T09:10:00.005Z"
    assert iso(2**62) == "-"


def test_retention_is_shown_in_the_unit_it_was_meant_in():
    assert short_duration(604_800_000) == "7 d"
    assert short_duration(43_200_000) == "12 h"
    assert short_duration(1) == "1 ms"
