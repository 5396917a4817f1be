from forebay.outbound.pace import Pace


def test_a_stream_below_its_least_pace_is_found_at_the_end_of_the_window():
    pace = Pace(10, 100, now=0)
    assert not pace.is_too_slow(500, 5)
    assert pace.is_too_slow(499, 10)


def test_a_fast_beginning_does_not_excuse_what_comes_after():
    pace = Pace(10, 100, now=0)
    assert not pace.is_too_slow(1_000_000, 10)
    assert not pace.is_too_slow(1, 19)
    assert pace.is_too_slow(1, 20)
